#include "converter/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "converter/test_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using nlohmann::json;
using support::TinyConfig;
using ::testing::HasSubstr;

class HfConfigTest : public ::testing::Test {
 protected:
  Result<ModelConfig> Read(const json& config) {
    support::WriteFile(path_, config.dump());
    return ReadHfConfig(path_);
  }
  Result<ModelConfig> ReadWith(const std::string& field, const json& value) {
    json config = TinyConfig();
    config[field] = value;
    return Read(config);
  }
  void ExpectRefused(const std::string& field, const json& value, std::string_view reason) {
    const auto read = ReadWith(field, value);
    ASSERT_FALSE(read) << field << " " << value;
    EXPECT_THAT(read.error().message(), HasSubstr(reason));
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "config.json";
};

TEST_F(HfConfigTest, ReadsFieldsAndDefaults) {
  const auto config = Read(TinyConfig());
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->architecture, "LlamaForCausalLM");
  EXPECT_EQ(config->hidden_size, 8u);
  EXPECT_EQ(config->intermediate_size, 20u);
  EXPECT_EQ(config->num_hidden_layers, 2u);
  EXPECT_EQ(config->num_attention_heads, 2u);
  EXPECT_EQ(config->num_key_value_heads, 1u);
  EXPECT_EQ(config->head_dim, 4u);
  EXPECT_EQ(config->vocab_size, 16u);
  EXPECT_EQ(config->max_position_embeddings, 64u);
  EXPECT_EQ(config->rms_norm_eps, 1e-5f);
  EXPECT_EQ(config->rope_theta, 10000.0f);
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_TRUE(config->tie_word_embeddings);
}

TEST_F(HfConfigTest, AbsentHeadsOfKeysAreAllHeadsAndAbsentTyingIsNone) {
  json object = TinyConfig();
  object.erase("num_key_value_heads");
  object.erase("tie_word_embeddings");
  const auto config = Read(object);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->num_key_value_heads, 2u);
  EXPECT_FALSE(config->tie_word_embeddings);
}

TEST_F(HfConfigTest, HeadDimNeedNotFollowFromTheHiddenSize) {
  const auto config = ReadWith("head_dim", 6);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->head_dim, 6u);
}

TEST_F(HfConfigTest, EveryRequiredFieldIsNamedWhenMissing) {
  for (const char* field :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "vocab_size", "max_position_embeddings", "rms_norm_eps", "architectures"}) {
    json config = TinyConfig();
    config.erase(field);
    const auto read = Read(config);
    ASSERT_FALSE(read) << field;
    EXPECT_THAT(read.error().message(), HasSubstr(field));
  }
}

TEST_F(HfConfigTest, RefusesMalformedFields) {
  ExpectRefused("hidden_size", "8", "hidden_size is \"8\"");
  ExpectRefused("hidden_size", 8.5, "hidden_size is 8.5");
  ExpectRefused("hidden_size", -8, "hidden_size is -8");
  ExpectRefused("hidden_size", uint64_t{1} << 40, "hidden_size");
  ExpectRefused("hidden_size", 9, "not a multiple of num_attention_heads");
  ExpectRefused("num_attention_heads", 0, "num_attention_heads");
  ExpectRefused("num_key_value_heads", 3, "num_key_value_heads");
  ExpectRefused("rms_norm_eps", "small", "rms_norm_eps");
  ExpectRefused("rms_norm_eps", -1.0, "rms_norm_eps");
  ExpectRefused("rope_theta", 1e300, "rope_theta");
  ExpectRefused("tie_word_embeddings", 1, "tie_word_embeddings");
  ExpectRefused("architectures", "LlamaForCausalLM", "architectures");
  ExpectRefused("architectures", json::array(), "architectures");
}

TEST_F(HfConfigTest, RefusesWhatChangesTheMathematics) {
  ExpectRefused("architectures", {"Qwen2ForCausalLM"}, "Qwen2ForCausalLM");
  ExpectRefused("hidden_act", "gelu", "hidden_act is \"gelu\"");
  ExpectRefused("attention_bias", true, "attention_bias");
  ExpectRefused("mlp_bias", true, "mlp_bias");
  ExpectRefused("partial_rotary_factor", 0.5, "partial_rotary_factor");
  ExpectRefused("quantization_config", {{"quant_method", "gptq"}}, "quantization_config");
  ExpectRefused("embedding_multiplier", 12.0, "embedding_multiplier");
}

TEST_F(HfConfigTest, AcceptsWhatLeavesTheMathematicsAlone) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, json>>{{"hidden_act", "silu"},
                                                 {"attention_bias", false},
                                                 {"sliding_window", nullptr},
                                                 {"partial_rotary_factor", 1.0},
                                                 {"quantization_config", nullptr},
                                                 {"pretraining_tp", 4},
                                                 {"rope_scaling", nullptr},
                                                 {"transformers_version", "4.40"}}) {
    const auto config = ReadWith(field, value);
    EXPECT_TRUE(config) << field << ": " << config.error().message();
  }
}

// TinyConfig has two layers and a context of 64.
TEST_F(HfConfigTest, ReadsAWindowOfAllLayers) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention"};
  struct {
    json fields;
    uint32_t window;
  } const cases[] = {
      {{}, 0},
      {{{"sliding_window", nullptr}}, 0},
      {{{"sliding_window", 0}}, 0},
      {{{"sliding_window", 12}}, 12},
      {{{"sliding_window", 63}}, 63},
      // As long as the context, or longer.
      {{{"sliding_window", 64}}, 0},
      {{{"sliding_window", 131072}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", nullptr}}, 12},
      {{{"sliding_window", 12}, {"use_sliding_window", false}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", false}, {"max_window_layers", 1}}, 0},
      {{{"sliding_window", nullptr}, {"use_sliding_window", true}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 0}}, 12},
      {{{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 2}}, 0},
      {{{"sliding_window", 12}, {"layer_types", sliding}}, 12},
      {{{"sliding_window", 12}, {"layer_types", full}}, 0},
      {{{"layer_types", full}}, 0},
      {{{"sliding_window", 12}, {"layer_types", sliding}, {"max_window_layers", 1}}, 12},
  };
  for (const auto& [fields, window] : cases) {
    json config = TinyConfig();
    config.update(fields.is_null() ? json::object() : fields);
    const auto read = Read(config);
    ASSERT_TRUE(read) << fields << ": " << read.error().message();
    EXPECT_EQ(read->sliding_window, window) << fields;
  }
}

TEST_F(HfConfigTest, RefusesWindowsThatAreNotOfAllLayers) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  struct {
    json fields;
    std::string_view reason;
  } const cases[] = {
      {{{"sliding_window", -1}}, "sliding_window is -1"},
      {{{"sliding_window", "12"}}, "sliding_window is \"12\""},
      {{{"sliding_window", 12}, {"use_sliding_window", 1}}, "use_sliding_window is 1"},
      {{{"sliding_window", 12}, {"max_window_layers", 1}}, "max_window_layers is 1 of 2 layers"},
      {{{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 1}},
       "max_window_layers is 1 of 2 layers"},
      {{{"sliding_window", 12}, {"use_sliding_window", true}}, "max_window_layers is missing"},
      {{{"sliding_window", 12}, {"layer_types", {"sliding_attention", "full_attention"}}},
       "layer_types is [\"sliding_attention\",\"full_attention\"]"},
      {{{"sliding_window", 12}, {"layer_types", {"chunked_attention", "chunked_attention"}}},
       "layer_types is [\"chunked_attention\""},
      {{{"layer_types", {"sliding_attention", "full_attention"}}}, "layer_types"},
      {{{"layer_types", {"full_attention"}}}, "layer_types has 1 entries"},
      {{{"layer_types", json::array()}}, "layer_types has 0 entries"},
      {{{"layer_types", "full_attention"}}, "layer_types is \"full_attention\""},
      {{{"layer_types", sliding}}, "sliding_window gives no window"},
      {{{"sliding_window", 12}, {"use_sliding_window", false}, {"layer_types", sliding}},
       "sliding_window gives no window"},
  };
  for (const auto& [fields, reason] : cases) {
    json config = TinyConfig();
    config.update(fields);
    const auto read = Read(config);
    ASSERT_FALSE(read) << fields;
    EXPECT_THAT(read.error().message(), HasSubstr(reason)) << fields;
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
  }
}

TEST_F(HfConfigTest, ReadsRopeScalingUnderEitherKey) {
  for (const char* key : {"type", "rope_type"}) {
    const auto linear = ReadWith("rope_scaling", {{key, "linear"}, {"factor", 4.0}});
    ASSERT_TRUE(linear) << linear.error().message();
    EXPECT_EQ(linear->rope_scaling.type, RopeScaling::Type::kLinear);
    EXPECT_EQ(linear->rope_scaling.factor, 4.0f);
    const auto none = ReadWith("rope_scaling", {{key, "default"}});
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_EQ(none->rope_scaling.type, RopeScaling::Type::kNone);
  }
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  const auto config = ReadWith("rope_scaling", llama3);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(config->rope_scaling.factor, 32.0f);
  EXPECT_EQ(config->rope_scaling.high_freq_factor, 4.0f);
  EXPECT_EQ(config->rope_scaling.original_max_position_embeddings, 8192u);
}

TEST_F(HfConfigTest, ReadsTheNewerFormOfRope) {
  const auto config =
      ReadWith("rope_parameters", {{"rope_theta", 500000.0}, {"rope_type", "default"}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->rope_theta, 500000.0f);
  ExpectRefused("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                "rope_parameters.partial_rotary_factor");
}

TEST_F(HfConfigTest, RefusesRopeScalingItDoesNotKnow) {
  ExpectRefused("rope_scaling", {{"type", "yarn"}, {"factor", 4.0}},
                "rope_scaling.type is \"yarn\"");
  ExpectRefused("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4.0}}, "\"dynamic\"");
  ExpectRefused("rope_scaling", {{"factor", 4.0}}, "rope_scaling.type");
  ExpectRefused("rope_scaling", {{"type", "linear"}}, "rope_scaling.factor");
  ExpectRefused("rope_scaling", {{"type", "llama3"}, {"factor", 4.0}}, "low_freq_factor");
  ExpectRefused("rope_scaling", "linear", "rope_scaling is \"linear\"");
}

TEST_F(HfConfigTest, RefusesTwoDescriptionsOfRopeThatDiffer) {
  json config = TinyConfig();
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  config["rope_parameters"] = {{"type", "linear"}, {"factor", 4.0}};
  const auto read = Read(config);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("rope_scaling are both given"));
}

TEST_F(HfConfigTest, RefusesDuplicateFields) {
  support::WriteFile(path_, R"({"hidden_size":8,"hidden_size":16})");
  const auto read = ReadHfConfig(path_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("\"hidden_size\" appears twice"));
}

}  // namespace
}  // namespace cria
