#include "converter/hugging_face/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

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
  // A configuration of another architecture than Llama.
  Result<ModelConfig> ReadAs(const char* architecture, const json& fields) {
    json config = TinyConfig();
    config["architectures"] = {architecture};
    config.update(fields.is_null() ? json::object() : fields);
    return Read(config);
  }
  static json With(json fields, const json& more) {
    fields.update(more);
    return fields;
  }
  void ExpectRefusedAs(const char* architecture, const json& fields, std::string_view reason) {
    const auto read = ReadAs(architecture, fields);
    ASSERT_FALSE(read) << fields;
    EXPECT_THAT(read.error().message(), HasSubstr(reason)) << fields;
    EXPECT_THAT(read.error().message(), HasSubstr(path_.string()));
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
  ExpectRefused("architectures", {"Qwen3MoeForCausalLM"},
                "[\"Qwen3MoeForCausalLM\"]; this version converts LlamaForCausalLM, "
                "MistralForCausalLM, MinistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM");
  ExpectRefused("num_local_experts", 8, "num_local_experts is 8");
  ExpectRefused("hidden_act", "gelu", "hidden_act is \"gelu\"");
  ExpectRefused("hidden_act", "a\nb", "hidden_act is \"a\\x0Ab\"");
  ExpectRefused("rope_scaling", {{"type", "a\nb"}}, "is \"a\\x0Ab\"");
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

TEST_F(HfConfigTest, LlamaHasNoWindow) {
  for (const json& fields :
       std::vector<json>{{{"sliding_window", 12}},
                         {{"sliding_window", 12}, {"use_sliding_window", true}},
                         {{"layer_types", {"sliding_attention"}}}}) {
    const auto config = ReadAs("LlamaForCausalLM", fields);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->layer_kinds[0].sliding_window, 0u) << fields;
  }
}

// TinyConfig has two layers and a context of 64.
TEST_F(HfConfigTest, MistralHasAWindowUnlessItIsNull) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention"};
  struct {
    json fields;
    uint32_t window;
  } const cases[] = {
      {{{"sliding_window", nullptr}}, 0},
      {{{"sliding_window", 0}}, 0},
      {{{"sliding_window", 12}}, 12},
      {{{"sliding_window", 63}}, 63},
      // The window is as long as the context or longer.
      {{{"sliding_window", 64}}, 0},
      {{{"sliding_window", 131072}}, 0},
      // The default is 4096.
      {{{"max_position_embeddings", 4096}}, 0},
      {{{"max_position_embeddings", 4097}}, 4096},
      {{{"sliding_window", 12}, {"use_sliding_window", false}}, 12},
      {{{"sliding_window", 12}, {"max_window_layers", 1}}, 12},
      {{{"sliding_window", 12}, {"layer_types", sliding}}, 12},
      {{{"sliding_window", nullptr}, {"layer_types", full}}, 0},
      {{{"sliding_window", 12}, {"layer_types", full}}, 0},
      {{{"sliding_window", 12}, {"layer_types", nullptr}}, 12},
      // The window is compared with the longest context.
      {{{"sliding_window", 64}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}, 64},
  };
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    for (const auto& [fields, window] : cases) {
      const auto read = ReadAs(architecture, fields);
      ASSERT_TRUE(read) << fields << ": " << read.error().message();
      EXPECT_EQ(read->layer_kinds[0].sliding_window, window) << fields;
      EXPECT_EQ(read->layer_kinds.size(), 1u) << fields;
    }
  }
}

TEST_F(HfConfigTest, QwensHaveAWindowWhereItIsSwitchedOn) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention"};
  const json on = {{"use_sliding_window", true}, {"sliding_window", 12}};
  struct {
    json fields;
    uint32_t window;
  } const cases[] = {
      {{}, 0},
      {{{"sliding_window", 12}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", nullptr}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", false}, {"max_window_layers", 1}}, 0},
      {{{"sliding_window", nullptr}, {"use_sliding_window", true}}, 0},
      // By default, the first 28 layers have no window.
      {on, 0},
      {{{"max_window_layers", 0}}, 12},
      {{{"max_window_layers", 2}}, 0},
      {{{"layer_types", sliding}}, 12},
      {{{"layer_types", sliding}, {"max_window_layers", 1}}, 12},
      {{{"layer_types", full}}, 0},
  };
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    for (const auto& [fields, window] : cases) {
      json all = fields.contains("sliding_window") ? json::object() : on;
      if (fields.empty()) all = json::object();
      all.update(fields.is_null() ? json::object() : fields);
      const auto read = ReadAs(architecture, all);
      ASSERT_TRUE(read) << all << ": " << read.error().message();
      EXPECT_EQ(read->layer_kinds[0].sliding_window, window) << all;
      EXPECT_EQ(read->layer_kinds.size(), 1u) << all;
    }
  }
}

TEST_F(HfConfigTest, SomeLayersMayHaveAWindow) {
  constexpr LayerKind kFull = {.rope_theta = 10000.0f};
  constexpr LayerKind kWindowed = {.sliding_window = 12, .rope_theta = 10000.0f};
  const auto expect = [&](const char* architecture, json fields,
                          const std::vector<LayerKind>& kinds,
                          const std::vector<uint8_t>& kind_of_layer) {
    fields["num_hidden_layers"] = 4;
    fields["sliding_window"] = 12;
    const auto read = ReadAs(architecture, fields);
    ASSERT_TRUE(read) << fields << ": " << read.error().message();
    EXPECT_EQ(read->layer_kinds, kinds) << fields;
    EXPECT_EQ(read->kind_of_layer, kind_of_layer) << fields;
  };
  const json alternate = {"sliding_attention", "full_attention", "sliding_attention",
                          "full_attention"};
  const json full_first = {"full_attention", "full_attention", "full_attention",
                           "sliding_attention"};
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    expect(architecture, {{"layer_types", alternate}}, {kWindowed, kFull}, {0, 1, 0, 1});
    expect(architecture, {{"layer_types", full_first}}, {kFull, kWindowed}, {0, 0, 0, 1});
  }
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const json on = {{"use_sliding_window", true}};
    expect(architecture, With(on, {{"layer_types", alternate}}), {kWindowed, kFull}, {0, 1, 0, 1});
    // Layers from max_window_layers on have the window, unless layer_types is given.
    expect(architecture, With(on, {{"max_window_layers", 1}}), {kFull, kWindowed}, {0, 1, 1, 1});
    expect(architecture, With(on, {{"max_window_layers", 3}}), {kFull, kWindowed}, {0, 0, 0, 1});
    expect(architecture, With(on, {{"max_window_layers", 4}}), {kFull}, {});
    expect(architecture, With(on, {{"max_window_layers", 1}, {"layer_types", full_first}}),
           {kFull, kWindowed}, {0, 0, 0, 1});
  }
  // A window that is as long as the longest context makes no difference.
  expect("MistralForCausalLM", {{"layer_types", alternate}, {"max_position_embeddings", 12}},
         {kFull}, {});
}

TEST_F(HfConfigTest, TypesOfLayersMayHaveTheirOwnRope) {
  const json types = {"sliding_attention", "full_attention"};
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"rope_theta", 1e6},
                     {"original_max_position_embeddings", 16}};
  const json fields = {
      {"sliding_window", 12},
      {"layer_types", types},
      {"rope_parameters",
       {{"full_attention", yarn}, {"sliding_attention", {{"rope_type", "default"}}}}}};
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    const auto read = ReadAs(architecture, fields);
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_EQ(read->layer_kinds.size(), 2u);
    EXPECT_EQ(read->layer_kind(0), (LayerKind{.sliding_window = 12, .rope_theta = 10000.0f}));
    EXPECT_EQ(read->layer_kind(1).sliding_window, 0u);
    EXPECT_EQ(read->layer_kind(1).rope_theta, 1e6f);
    EXPECT_EQ(read->layer_kind(1).rope_scaling.type, RopeScaling::Type::kYarn);
    EXPECT_EQ(read->layer_kind(1).rope_scaling.original_max_position_embeddings, 16u);
    EXPECT_EQ(read->longest_context(), 64u);
  }
  // The older name of the object, a base for all types, and an original context that is outside
  // the object, where transformers does not look.
  json older = fields;
  older["rope_scaling"] = older["rope_parameters"];
  older.erase("rope_parameters");
  older["rope_theta"] = 500.0;
  older["original_max_position_embeddings"] = 8;
  const auto read = ReadAs("MistralForCausalLM", older);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->layer_kind(0).rope_theta, 500.0f);
  EXPECT_EQ(read->layer_kind(1).rope_theta, 1e6f);
  EXPECT_EQ(read->layer_kind(1).rope_scaling.original_max_position_embeddings, 16u);
  // One type of layers uses only its own.
  json all_full = fields;
  all_full["layer_types"] = {"full_attention", "full_attention"};
  all_full["rope_parameters"].erase("sliding_attention");
  for (const char* architecture : {"MistralForCausalLM", "LlamaForCausalLM"}) {
    const auto alike = ReadAs(architecture, all_full);
    ASSERT_TRUE(alike) << alike.error().message();
    ASSERT_EQ(alike->layer_kinds.size(), 1u);
    EXPECT_EQ(alike->layer_kinds[0].rope_theta, 1e6f);
  }
}

TEST_F(HfConfigTest, RefusesRopeOfTypesThatIsIncomplete) {
  const json none = {{"rope_type", "default"}};
  const auto expect_refused = [&](const json& parameters, std::string_view reason) {
    ExpectRefusedAs("MistralForCausalLM",
                    {{"sliding_window", 12},
                     {"layer_types", {"sliding_attention", "full_attention"}},
                     {"rope_parameters", parameters}},
                    reason);
  };
  expect_refused({{"full_attention", none}},
                 "rope_parameters.sliding_attention must be an object with the parameters");
  expect_refused({{"sliding_attention", none}},
                 "rope_parameters.full_attention must be an object with the parameters");
  expect_refused({{"sliding_attention", none}, {"full_attention", nullptr}},
                 "rope_parameters.full_attention must be an object");
  expect_refused({{"sliding_attention", none}, {"full_attention", 10000.0}},
                 "rope_parameters.full_attention must be an object");
  expect_refused({{"sliding_attention", none}, {"full_attention", none}, {"rope_theta", 1e6}},
                 "rope_parameters has parameters beside the objects of types of layers");
  expect_refused({{"sliding_attention", none}, {"full_attention", {{"rope_type", "longrope"}}}},
                 "rope_parameters.full_attention.rope_type is \"longrope\"");
  expect_refused({{"sliding_attention", none},
                  {"full_attention", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}},
                 "rope_parameters.full_attention.partial_rotary_factor is 0.5");
  ExpectRefused("rope_local_base_freq", 10000.0, "rope_local_base_freq is 10000");
}

TEST_F(HfConfigTest, RefusesWindowsThatContradict) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json on = {{"use_sliding_window", true}, {"sliding_window", 12}};
  struct {
    json fields;
    std::string_view reason;
  } const cases[] = {
      {{{"sliding_window", -1}}, "sliding_window is -1"},
      {{{"sliding_window", "12"}}, "sliding_window is \"12\""},
      {{{"use_sliding_window", 1}}, "use_sliding_window is 1"},
      {{{"max_window_layers", -1}}, "max_window_layers is -1"},
      {{{"layer_types", {"full_attention", "chunked_attention"}}},
       "layer_types has \"chunked_attention\"; this version supports full_attention and "
       "sliding_attention"},
      {{{"layer_types", {"full_attention", 1}}}, "layer_types has 1; this version"},
      {{{"layer_types", {"full_attention", nullptr}}}, "layer_types has null"},
      {{{"layer_types", {"full_attention"}}}, "layer_types has 1 entries"},
      {{{"layer_types", json::array()}}, "layer_types has 0 entries"},
      {{{"layer_types", "full_attention"}}, "layer_types is \"full_attention\""},
      {{{"sliding_window", nullptr}, {"layer_types", sliding}}, "sliding_window gives no window"},
      {{{"use_sliding_window", false}, {"layer_types", sliding}}, "sliding_window gives no window"},
  };
  for (const auto& [fields, reason] : cases) {
    json all = on;
    all.update(fields);
    ExpectRefusedAs("Qwen2ForCausalLM", all, reason);
  }
  for (const json& window : {json(), json(0)}) {
    ExpectRefusedAs(
        "MistralForCausalLM",
        {{"sliding_window", window}, {"layer_types", {"sliding_attention", "full_attention"}}},
        "layer_types has sliding_attention, but sliding_window gives no window");
  }
}

// They are refused before memory is taken for each.
TEST_F(HfConfigTest, RefusesFarTooManyLayers) {
  for (const char* architecture : {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM"}) {
    ExpectRefusedAs(architecture,
                    {{"num_hidden_layers", ~0u},
                     {"use_sliding_window", true},
                     {"sliding_window", 12},
                     {"max_window_layers", 1u << 31}},
                    "num_hidden_layers is 4294967295, outside 1 to 1024");
  }
}

TEST_F(HfConfigTest, ReadsRopeScalingUnderEitherKey) {
  for (const char* key : {"type", "rope_type"}) {
    const auto linear = ReadWith("rope_scaling", {{key, "linear"}, {"factor", 4.0}});
    ASSERT_TRUE(linear) << linear.error().message();
    EXPECT_EQ(linear->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLinear);
    EXPECT_EQ(linear->layer_kinds[0].rope_scaling.factor, 4.0f);
    const auto none = ReadWith("rope_scaling", {{key, "default"}});
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_EQ(none->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
  }
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  const auto config = ReadWith("rope_scaling", llama3);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.factor, 32.0f);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.high_freq_factor, 4.0f);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.original_max_position_embeddings, 8192u);
}

TEST_F(HfConfigTest, ReadsTheNewerFormOfRope) {
  const auto config =
      ReadWith("rope_parameters", {{"rope_theta", 500000.0}, {"rope_type", "default"}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_theta, 500000.0f);
  ExpectRefused("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                "rope_parameters.partial_rotary_factor");
}

TEST_F(HfConfigTest, DynamicScalingLengthensTheContext) {
  const auto config = ReadWith("rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.type, RopeScaling::Type::kDynamic);
  EXPECT_EQ(config->layer_kinds[0].rope_scaling.factor, 4.0f);
  EXPECT_EQ(config->max_position_embeddings, 64u);
  EXPECT_EQ(config->longest_context(), 256u);
}

TEST_F(HfConfigTest, ReadsYarnAndItsDefaults) {
  const auto read = [&](const json& more) {
    json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
    yarn.update(more);
    const auto config = ReadWith("rope_scaling", yarn);
    EXPECT_TRUE(config) << config.error().message();
    return config->layer_kinds[0].rope_scaling;
  };
  const RopeScaling plain = read(json::object());
  EXPECT_EQ(plain.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(plain.factor, 4.0f);
  EXPECT_EQ(plain.original_max_position_embeddings, 64u);
  EXPECT_FLOAT_EQ(plain.attention_factor, 1.1386294f);  // 0.1 ln 4 + 1.
  EXPECT_EQ(plain.beta_fast, 32.0f);
  EXPECT_EQ(plain.beta_slow, 1.0f);
  EXPECT_TRUE(plain.truncate);
  const RopeScaling full = read({{"original_max_position_embeddings", 16},
                                 {"attention_factor", 0.75},
                                 {"beta_fast", 16},
                                 {"beta_slow", 2.0},
                                 {"truncate", false}});
  EXPECT_EQ(full.original_max_position_embeddings, 16u);
  EXPECT_EQ(full.attention_factor, 0.75f);
  EXPECT_EQ(full.beta_fast, 16.0f);
  EXPECT_EQ(full.beta_slow, 2.0f);
  EXPECT_FALSE(full.truncate);
  // If the factor is null, it is the ratio of the contexts.
  EXPECT_EQ(read({{"factor", nullptr}, {"original_max_position_embeddings", 8}}).factor, 8.0f);
  // (0.1 * 2 ln 4 + 1) / (0.1 ln 4 + 1); one of them alone is ignored.
  EXPECT_FLOAT_EQ(read({{"mscale", 2.0}, {"mscale_all_dim", 1.0}}).attention_factor, 1.1217511f);
  EXPECT_FLOAT_EQ(read({{"mscale", 2.0}}).attention_factor, 1.1386294f);
  EXPECT_FLOAT_EQ(read({{"factor", 1.0}}).attention_factor, 1.0f);
}

TEST_F(HfConfigTest, TheTrainedContextMayStandBesideTheScaling) {
  json config = TinyConfig();
  config["original_max_position_embeddings"] = 32;
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
  const auto read = Read(config);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->layer_kinds[0].rope_scaling.original_max_position_embeddings, 32u);
}

TEST_F(HfConfigTest, RefusesYarnWithoutSense) {
  const auto expect = [&](const json& more, std::string_view reason) {
    json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
    yarn.update(more);
    ExpectRefused("rope_scaling", yarn, reason);
  };
  expect({{"original_max_position_embeddings", 0}}, "original_max_position_embeddings is 0");
  expect({{"attention_factor", -1.0}}, "rope_scaling.attention_factor");
  expect({{"beta_fast", 0.5}}, "rope_scaling.beta_fast");
  expect({{"factor", 0.5}}, "rope_scaling.factor is 0.5");
  expect({{"truncate", 1}}, "rope_scaling.truncate is 1");
  expect({{"mscale", "1"}}, "rope_scaling.mscale is \"1\"");
  ExpectRefused("rope_scaling", {{"rope_type", "yarn"}, {"original_max_position_embeddings", 16}},
                "rope_scaling.factor is missing");
}

TEST_F(HfConfigTest, RefusesRopeScalingItDoesNotKnow) {
  ExpectRefused("rope_scaling", {{"type", "longrope"}, {"factor", 4.0}},
                "rope_scaling.type is \"longrope\"");
  for (const char* field : {"alpha", "mrope_section", "long_factor", "short_factor"}) {
    ExpectRefused("rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}, {field, {1.0}}},
                  std::string("rope_scaling.") + field + " is given");
  }
  ExpectRefused("rope_scaling", {{"rope_type", "dynamic"}}, "rope_scaling.factor");
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
