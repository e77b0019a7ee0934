#include "converter/hugging_face/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;
using support::TinyConfig;
using ::testing::HasSubstr;

class HfConfigTest : public HfConfigFixture {};

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
  EXPECT_EQ(config->layer_kinds[0].rope_theta, 10000.0f);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_TRUE(config->tie_word_embeddings);
}

TEST_F(HfConfigTest, AbsentHeadsOfKeysAreAllHeadsAndAbsentTyingIsNone) {
  json object = TinyConfig();
  object.erase("num_key_value_heads");
  object.erase("tie_word_embeddings");
  object.erase("rms_norm_eps");
  const auto config = Read(object);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->num_key_value_heads, 2u);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->rms_norm_eps, 1e-6f);
}

TEST_F(HfConfigTest, DefaultsDifferFromFamilyToFamily) {
  json object = TinyConfig();
  object.erase("num_key_value_heads");
  object["num_attention_heads"] = 32;
  object["hidden_size"] = 64;
  const auto read = [&](const char* architecture) {
    object["architectures"] = {architecture};
    const auto config = Read(object);
    EXPECT_TRUE(config) << config.error().message();
    return *config;
  };
  EXPECT_EQ(read("LlamaForCausalLM").num_key_value_heads, 32u);
  EXPECT_EQ(read("MistralForCausalLM").num_key_value_heads, 8u);
  EXPECT_EQ(read("Qwen2ForCausalLM").num_key_value_heads, 32u);
  EXPECT_EQ(read("Qwen2ForCausalLM").head_dim, 2u);
  EXPECT_EQ(read("Qwen3ForCausalLM").head_dim, 128u);
  // Null is not absent.
  object["num_key_value_heads"] = nullptr;
  EXPECT_EQ(read("MistralForCausalLM").num_key_value_heads, 32u);
}

TEST_F(HfConfigTest, TheModelTypeNamesAnArchitectureToo) {
  const std::vector<std::pair<const char*, const char*>> types = {{"llama", "LlamaForCausalLM"},
                                                                  {"mistral", "MistralForCausalLM"},
                                                                  {"qwen2", "Qwen2ForCausalLM"},
                                                                  {"qwen3", "Qwen3ForCausalLM"}};
  for (const auto& [type, architecture] : types) {
    json object = TinyConfig();
    object.erase("architectures");
    object["model_type"] = type;
    const auto config = Read(object);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->architecture, architecture);
  }
}

TEST_F(HfConfigTest, ArchitecturesAndModelTypeMustAgree) {
  const std::vector<std::pair<const char*, const char*>> families = {
      {"llama", "LlamaForCausalLM"},
      {"mistral", "MistralForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"}};
  for (const auto& [type, architecture] : families) {
    for (const auto& [own_type, other] : families) {
      if (type == own_type) {
        const auto config = ReadAs(architecture, {{"model_type", type}});
        ASSERT_TRUE(config) << config.error().message();
        EXPECT_EQ(config->architecture, architecture);
      } else {
        ExpectRefusedAs(other, {{"model_type", type}, {"sliding_window", 12}},
                        std::string("model_type is \"") + type + "\", but architectures names " +
                            other + ", whose model_type is \"" + own_type + "\"");
      }
    }
    // An absent, null or empty field contradicts nothing.
    for (const json& absent : {json(nullptr), json("")}) {
      EXPECT_TRUE(ReadAs(architecture, {{"model_type", absent}}));
    }
    for (const json& absent : {json(nullptr), json::array()}) {
      json object = TinyConfig();
      object["architectures"] = absent;
      object["model_type"] = type;
      const auto config = Read(object);
      ASSERT_TRUE(config) << config.error().message();
      EXPECT_EQ(config->architecture, architecture);
    }
  }
  ExpectRefused("model_type", "mixtral", "model_type is \"mixtral\"");
  ExpectRefused("model_type", 1, "model_type is 1");
  ExpectRefused("architectures", {"LlamaForCausalLM", "MistralForCausalLM"},
                "must be a list of one name");
}

TEST_F(HfConfigTest, RefusesNullWhereItMeansNothing) {
  for (const char* field : {"tie_word_embeddings", "rms_norm_eps", "hidden_act"}) {
    ExpectRefused(field, nullptr, std::string(field) + " is null");
  }
}

TEST_F(HfConfigTest, BiasesAndNormsAreThoseOfTheFamily) {
  struct {
    const char* architecture;
    json fields;
    bool qkv_bias, o_bias, mlp_bias, qk_norm;
  } const cases[] = {
      {"LlamaForCausalLM", {}, false, false, false, false},
      {"LlamaForCausalLM", {{"attention_bias", true}}, true, true, false, false},
      {"LlamaForCausalLM", {{"mlp_bias", true}}, false, false, true, false},
      {"MistralForCausalLM", {{"attention_bias", false}}, false, false, false, false},
      {"Qwen2ForCausalLM", {}, true, false, false, false},
      {"Qwen2ForCausalLM", {{"attention_bias", false}}, true, false, false, false},
      {"Qwen3ForCausalLM", {}, false, false, false, true},
      {"Qwen3ForCausalLM", {{"attention_bias", true}}, true, true, false, true},
  };
  for (const auto& expected : cases) {
    const auto config = ReadAs(expected.architecture, expected.fields);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->qkv_bias, expected.qkv_bias) << expected.architecture << expected.fields;
    EXPECT_EQ(config->o_bias, expected.o_bias) << expected.architecture << expected.fields;
    EXPECT_EQ(config->mlp_bias, expected.mlp_bias) << expected.architecture << expected.fields;
    EXPECT_EQ(config->qk_norm, expected.qk_norm) << expected.architecture << expected.fields;
  }
  ExpectRefusedAs("MistralForCausalLM", {{"attention_bias", true}}, "attention_bias is true");
  for (const char* other : {"MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    ExpectRefusedAs(other, {{"mlp_bias", true}}, "mlp_bias is true");
  }
  ExpectRefused("attention_bias", 1, "attention_bias is 1");
}

TEST_F(HfConfigTest, HeadDimNeedNotFollowFromTheHiddenSize) {
  const auto config = ReadWith("head_dim", 6);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->head_dim, 6u);
}

TEST_F(HfConfigTest, EveryRequiredFieldIsNamedWhenMissing) {
  for (const char* field :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "vocab_size", "max_position_embeddings", "architectures"}) {
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
  ExpectRefused(
      "architectures", {"Mamba2ForCausalLM"},
      "[\"Mamba2ForCausalLM\"]; this version converts LlamaForCausalLM, "
      "MistralForCausalLM, MinistralForCausalLM, Ministral3ForCausalLM, Qwen2ForCausalLM, ");
  // One reason instead of all families.
  ExpectRefused(
      "architectures", {"Gemma3TextModel"},
      "architectures is [\"Gemma3TextModel\"]: the model is EmbeddingGemma, whose attention "
      "looks in both directions, which is not supported");
  for (const char* const name : {"Qwen3ForSequenceClassification", "XForSequenceClassification"}) {
    ExpectRefused(
        "architectures", {name},
        std::string(name) + "\"]: the model has a head for classes, which is not supported");
  }
  ExpectRefused("num_local_experts", 8, "num_local_experts is 8");
  ExpectRefused("hidden_act", "relu", "hidden_act is \"relu\"; this version supports silu, gelu");
  ExpectRefused("hidden_act", "a\nb", "hidden_act is \"a\\x0Ab\"");
  ExpectRefused("rope_scaling", {{"type", "a\nb"}}, "is \"a\\x0Ab\"");
  ExpectRefused("partial_rotary_factor", 0.5, "partial_rotary_factor");
  ExpectRefused("quantization_config", {{"quant_method", "gptq"}}, "quantization_config");
  ExpectRefused("embedding_multiplier", 12.0, "embedding_multiplier");
}

TEST_F(HfConfigTest, AcceptsWhatLeavesTheMathematicsAlone) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, json>>{{"hidden_act", "silu"},
                                                 {"hidden_act", "gelu"},
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

TEST_F(HfConfigTest, RefusesDuplicateFields) {
  support::WriteFile(path_, R"({"hidden_size":8,"hidden_size":16})");
  const auto read = ReadHfModel(path_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("\"hidden_size\" appears twice"));
}

}  // namespace
}  // namespace cria
