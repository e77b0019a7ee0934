// What transformers' classes for the newer families make of a config.json, and what is refused
// because it would compute something else.

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr const char* kGemma = "GemmaForCausalLM";
constexpr const char* kGemma2 = "Gemma2ForCausalLM";
constexpr const char* kGemma3 = "Gemma3ForCausalLM";
constexpr const char* kPhi3 = "Phi3ForCausalLM";
constexpr const char* kSmolLm3 = "SmolLM3ForCausalLM";
constexpr const char* kGranite = "GraniteForCausalLM";
constexpr const char* kOlmo2 = "Olmo2ForCausalLM";

class HfFamiliesTest : public HfConfigFixture {
 protected:
  // A configuration of 64 positions, hidden size 8, and what `fields` says.
  HfModel ReadModel(const char* architecture, const json& fields,
                    const std::vector<const char*>& absent = {}) {
    json config = support::TinyConfig();
    config["architectures"] = {architecture};
    for (const char* name : absent) config.erase(name);
    config.update(fields.is_null() ? json::object() : fields);
    support::WriteFile(path_, config.dump());
    auto read = ReadHfModel(path_);
    EXPECT_TRUE(read) << config << ": " << read.error().message();
    return read.value_or(HfModel{});
  }
  // For each layer, whether it has a window.
  std::string Windows(const char* architecture, const json& fields) {
    const ModelConfig config = ReadModel(architecture, fields).config;
    std::string text;
    for (size_t i = 0; i < config.num_hidden_layers; ++i) {
      text += config.layer_kind(i).sliding_window == 0 ? 'f' : 'w';
    }
    return text;
  }
  // For each layer, whether it has rope.
  std::string Ropes(const json& fields) {
    const ModelConfig config = ReadModel(kSmolLm3, fields).config;
    std::string text;
    for (size_t i = 0; i < config.num_hidden_layers; ++i) {
      text += config.layer_kind(i).no_rope ? '-' : 'r';
    }
    return text;
  }
};

TEST_F(HfFamiliesTest, AbsentFieldsHaveTheDefaultsOfTheFamily) {
  const std::vector<const char*> absent = {"num_key_value_heads", "rms_norm_eps",
                                           "tie_word_embeddings"};
  struct {
    const char* architecture;
    uint32_t key_value_heads;
    uint32_t head_dim;
    float epsilon;
    bool is_tied;
    float theta;
    HiddenAct activation;
  } const cases[] = {
      {kGemma, 16, 256, 1e-6f, true, 1e4f, HiddenAct::kGeluTanh},
      {kGemma2, 4, 256, 1e-6f, true, 1e4f, HiddenAct::kGeluTanh},
      {kPhi3, 32, 2, 1e-5f, false, 1e4f, HiddenAct::kSilu},
      {kSmolLm3, 4, 2, 1e-6f, true, 2e6f, HiddenAct::kSilu},
      {kGranite, 32, 2, 1e-6f, false, 1e4f, HiddenAct::kSilu},
      {kOlmo2, 32, 2, 1e-5f, false, 1e4f, HiddenAct::kSilu},
  };
  for (const auto& expected : cases) {
    const ModelConfig config =
        ReadModel(expected.architecture, {{"num_attention_heads", 32}, {"hidden_size", 64}}, absent)
            .config;
    EXPECT_EQ(config.num_key_value_heads, expected.key_value_heads) << expected.architecture;
    EXPECT_EQ(config.head_dim, expected.head_dim) << expected.architecture;
    EXPECT_EQ(config.rms_norm_eps, expected.epsilon) << expected.architecture;
    EXPECT_EQ(config.tie_word_embeddings, expected.is_tied) << expected.architecture;
    EXPECT_EQ(config.layer_kinds.front().rope_theta, expected.theta) << expected.architecture;
    EXPECT_EQ(config.hidden_act, expected.activation) << expected.architecture;
  }
}

TEST_F(HfFamiliesTest, AbsentSizesAreRefusedWhereNoPublishedFileLacksThem) {
  for (const char* architecture : {kGemma, kGemma2, kPhi3, kSmolLm3, kGranite, kOlmo2}) {
    json config = support::TinyConfig();
    config["architectures"] = {architecture};
    config.erase("hidden_size");
    const auto read = Read(config);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr("hidden_size is missing"));
  }
  const ModelConfig config =
      ReadModel(kGemma3, {},
                {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                 "num_key_value_heads", "vocab_size", "max_position_embeddings", "rms_norm_eps",
                 "tie_word_embeddings"})
          .config;
  EXPECT_EQ(config.hidden_size, 2304u);
  EXPECT_EQ(config.intermediate_size, 9216u);
  EXPECT_EQ(config.num_hidden_layers, 26u);
  EXPECT_EQ(config.num_attention_heads, 8u);
  EXPECT_EQ(config.num_key_value_heads, 4u);
  EXPECT_EQ(config.head_dim, 256u);
  EXPECT_EQ(config.vocab_size, 262208u);
  EXPECT_EQ(config.max_position_embeddings, 131072u);
  EXPECT_TRUE(config.tie_word_embeddings);
}

TEST_F(HfFamiliesTest, NormsAreWhereTheFamilyHasThem) {
  for (const char* architecture : {kGemma, kPhi3, kSmolLm3, kGranite}) {
    const ModelConfig config = ReadModel(architecture, {}).config;
    EXPECT_EQ(config.norm_placement, NormPlacement::kBefore);
    EXPECT_FALSE(config.qk_norm || config.joint_qk_norm);
  }
  EXPECT_EQ(ReadModel(kGemma2, {}).config.norm_placement, NormPlacement::kBeforeAndAfter);
  EXPECT_FALSE(ReadModel(kGemma2, {}).config.qk_norm);
  EXPECT_EQ(ReadModel(kGemma3, {}).config.norm_placement, NormPlacement::kBeforeAndAfter);
  EXPECT_TRUE(ReadModel(kGemma3, {}).config.qk_norm);
  EXPECT_EQ(ReadModel(kOlmo2, {}).config.norm_placement, NormPlacement::kAfter);
  EXPECT_TRUE(ReadModel(kOlmo2, {}).config.joint_qk_norm);
}

TEST_F(HfFamiliesTest, TheFirstGemmaMeansTheApproximationByGelu) {
  EXPECT_EQ(ReadModel(kGemma, {{"hidden_act", "gelu"}}).config.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_EQ(ReadModel(kGemma, {{"hidden_act", "gelu"}, {"hidden_activation", "gelu_pytorch_tanh"}})
                .config.hidden_act,
            HiddenAct::kGeluTanh);
  EXPECT_EQ(ReadModel(kGemma2, {{"hidden_activation", "gelu"}}).config.hidden_act,
            HiddenAct::kGelu);
  EXPECT_EQ(ReadModel(kPhi3, {{"hidden_act", "gelu_new"}}).config.hidden_act, HiddenAct::kGeluTanh);
  ExpectRefusedAs(kGemma2, {{"hidden_activation", nullptr}}, "hidden_activation is null");
  ExpectRefusedAs(kGemma2, {{"hidden_act", "silu"}}, "hidden_act contradicts hidden_activation");
  ExpectRefusedAs(kGemma, {{"hidden_activation", "gelu_fast"}},
                  "hidden_activation is \"gelu_fast\"");
}

TEST_F(HfFamiliesTest, MultipliersAreFolded) {
  const WeightFolding gemma = ReadModel(kGemma, {{"head_dim", 4}}).folding;
  EXPECT_TRUE(gemma.adds_one_to_norms);
  EXPECT_DOUBLE_EQ(gemma.embedding_multiplier, std::sqrt(8.0));
  EXPECT_EQ(gemma.score_factor, 1.0);
  // The default of query_pre_attn_scalar is 256, whatever heads have.
  EXPECT_DOUBLE_EQ(ReadModel(kGemma2, {{"head_dim", 4}}).folding.score_factor, 0.125);
  EXPECT_DOUBLE_EQ(
      ReadModel(kGemma3, {{"head_dim", 4}, {"query_pre_attn_scalar", 16}}).folding.score_factor,
      0.5);
  const WeightFolding granite = ReadModel(kGranite, {{"embedding_multiplier", 12},
                                                     {"attention_multiplier", 0.5},
                                                     {"residual_multiplier", 0.25},
                                                     {"logits_scaling", 8.0}})
                                    .folding;
  EXPECT_EQ(granite.embedding_multiplier, 12.0);
  EXPECT_EQ(granite.score_factor, 1.0);  // 0.5 times the root of 4.
  EXPECT_EQ(granite.residual_multiplier, 0.25);
  EXPECT_EQ(granite.logits_divisor, 8.0);
  // The default of attention_multiplier is 1, not 1 / sqrt(head_dim).
  EXPECT_EQ(ReadModel(kGranite, {}).folding.score_factor, 2.0);
  for (const char* field :
       {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"}) {
    ExpectRefusedAs(kGranite, {{field, nullptr}}, std::string(field) + " is null");
    ExpectRefusedAs(kGranite, {{field, 0}}, std::string(field) + " is 0");
    ExpectRefusedAs(kOlmo2, {{field, 3.0}}, std::string(field) + " is 3");
  }
  ExpectRefusedAs(kGemma2, {{"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar is 0");
  ExpectRefusedAs(kGemma2, {{"query_pre_attn_scalar", nullptr}}, "query_pre_attn_scalar is null");
  ExpectRefusedAs(kGemma, {{"query_pre_attn_scalar", 16}}, "query_pre_attn_scalar is 16");
}

TEST_F(HfFamiliesTest, CapsHaveDefaultsThatNullSwitchesOff) {
  const ModelConfig gemma2 = ReadModel(kGemma2, {}).config;
  EXPECT_EQ(gemma2.attn_logit_softcapping, 50.0f);
  EXPECT_EQ(gemma2.final_logit_softcapping, 30.0f);
  const ModelConfig none = ReadModel(kGemma2, {{"attn_logit_softcapping", nullptr},
                                               {"final_logit_softcapping", nullptr}})
                               .config;
  EXPECT_EQ(none.attn_logit_softcapping, 0.0f);
  EXPECT_EQ(none.final_logit_softcapping, 0.0f);
  EXPECT_EQ(ReadModel(kGemma3, {}).config.final_logit_softcapping, 0.0f);
  EXPECT_EQ(ReadModel(kGemma3, {{"final_logit_softcapping", 20}}).config.final_logit_softcapping,
            20.0f);
  ExpectRefusedAs(kGemma2, {{"attn_logit_softcapping", 0.0}}, "attn_logit_softcapping is 0");
  // transformers ignores this one.
  ExpectRefusedAs(kGemma3, {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping is 50");
  ExpectRefusedAs(kGemma, {{"final_logit_softcapping", 30.0}}, "final_logit_softcapping is 30");
}

TEST_F(HfFamiliesTest, WindowsAlternate) {
  const json six = {{"num_hidden_layers", 6}, {"sliding_window", 12}};
  EXPECT_EQ(Windows(kGemma2, six), "wfwfwf");
  EXPECT_EQ(Windows(kGemma3, six), "wwwwwf");
  EXPECT_EQ(Windows(kGemma3, With(six, {{"sliding_window_pattern", 2}})), "wfwfwf");
  EXPECT_EQ(Windows(kGemma3, With(six, {{"sliding_window_pattern", 1}})), "ffffff");
  const json types = {"full_attention", "sliding_attention"};
  EXPECT_EQ(Windows(kGemma2, {{"sliding_window", 12}, {"layer_types", types}}), "fw");
  EXPECT_EQ(Windows(kGemma3, {{"sliding_window", 12}, {"layer_types", types}}), "fw");
  ExpectRefusedAs(kGemma2, {{"sliding_window", nullptr}}, "sliding_window gives no window");
  ExpectRefusedAs(kGemma2, {{"sliding_window", 0}}, "sliding_window gives no window");
  ExpectRefusedAs(kGemma3, {{"sliding_window_pattern", 0}}, "sliding_window_pattern is 0");
  ExpectRefusedAs(kGemma3, {{"sliding_window_pattern", nullptr}}, "sliding_window_pattern is null");
  ExpectRefusedAs(kGemma2, {{"sliding_window_pattern", 3}}, "sliding_window_pattern is 3");
  ExpectRefusedAs(kGemma3, {{"use_bidirectional_attention", true}},
                  "use_bidirectional_attention is true");
  for (const char* architecture : {kGemma, kGranite, kOlmo2}) {
    EXPECT_EQ(Windows(architecture, {{"sliding_window", nullptr}}), "ff");
    ExpectRefusedAs(architecture, {{"sliding_window", 12}}, "sliding_window is 12");
    ExpectRefusedAs(architecture, {{"layer_types", types}}, "layer_types is [");
  }
}

TEST_F(HfFamiliesTest, AttentionIsCausal) {
  for (const char* architecture : {kGemma, kPhi3, kGranite}) {
    ExpectRefusedAs(architecture, {{"is_causal", false}}, "is_causal is false");
  }
}

TEST_F(HfFamiliesTest, Phi3HasTheWindowEverywhereIfItIsGiven) {
  EXPECT_EQ(Windows(kPhi3, {}), "ff");
  EXPECT_EQ(Windows(kPhi3, {{"sliding_window", 12}}), "ww");
  EXPECT_EQ(Windows(kPhi3, {{"sliding_window", 262144}}), "ff");
  ExpectRefusedAs(kPhi3,
                  {{"sliding_window", 12}, {"layer_types", {"full_attention", "full_attention"}}},
                  "layer_types is [");
}

TEST_F(HfFamiliesTest, SmolLm3HasLayersWithoutRope) {
  EXPECT_EQ(Ropes({{"num_hidden_layers", 9}}), "rrr-rrr-r");
  EXPECT_EQ(Ropes({{"num_hidden_layers", 4}, {"no_rope_layer_interval", 2}}), "r-r-");
  EXPECT_EQ(Ropes({{"num_hidden_layers", 3}, {"no_rope_layers", nullptr}}), "rrr");
  EXPECT_EQ(Ropes({{"num_hidden_layers", 3}, {"no_rope_layers", {1, 0, 0, 1}}}), "r--");
  const json window = {{"num_hidden_layers", 3},
                       {"no_rope_layers", {1, 0, 0}},
                       {"use_sliding_window", true},
                       {"sliding_window", 12}};
  EXPECT_EQ(Windows(kSmolLm3, window), "fww");
  EXPECT_EQ(Windows(kSmolLm3, With(window, {{"use_sliding_window", false}})), "fff");
  EXPECT_EQ(Windows(kSmolLm3, With(window, {{"sliding_window", nullptr}})), "fff");
  EXPECT_EQ(Windows(kSmolLm3, With(window, {{"max_window_layers", 1}})), "fww");
  EXPECT_EQ(Windows(kSmolLm3,
                    With(window, {{"layer_types",
                                   {"sliding_attention", "full_attention", "full_attention"}}})),
            "wff");
  ExpectRefusedAs(kSmolLm3, {{"no_rope_layers", {1}}}, "no_rope_layers has 1 entries");
  ExpectRefusedAs(kSmolLm3, {{"no_rope_layers", {1, 2}}}, "no_rope_layers has 2");
  ExpectRefusedAs(kSmolLm3, {{"no_rope_layer_interval", 0}}, "no_rope_layer_interval is 0");
  ExpectRefusedAs(kSmolLm3, {{"no_rope_layer_interval", nullptr}},
                  "no_rope_layer_interval is null");
  ExpectRefusedAs(kOlmo2, {{"no_rope_layers", {1, 0}}}, "no_rope_layers is [1,0]");
}

TEST_F(HfFamiliesTest, Gemma3HasTwoRopes) {
  const json old_form = {{"num_hidden_layers", 6}, {"sliding_window", 12}};
  const auto read = [&](const json& fields) { return ReadModel(kGemma3, fields).config; };
  const ModelConfig plain = read(old_form);
  EXPECT_EQ(plain.layer_kind(0).rope_theta, 1e4f);
  EXPECT_EQ(plain.layer_kind(5).rope_theta, 1e6f);
  const json linear = {{"rope_type", "linear"}, {"factor", 8.0}};
  const ModelConfig scaled = read(With(
      old_form, {{"rope_theta", 5e5}, {"rope_local_base_freq", 5e3}, {"rope_scaling", linear}}));
  EXPECT_EQ(scaled.layer_kind(0), (LayerKind{.sliding_window = 12, .rope_theta = 5e3f}));
  EXPECT_EQ(scaled.layer_kind(5).rope_theta, 5e5f);
  EXPECT_EQ(scaled.layer_kind(5).rope_scaling.type, RopeScaling::Type::kLinear);
  // In the newer form, what one type of layers lacks has the default, too.
  const ModelConfig nested =
      read(With(old_form, {{"rope_parameters", {{"full_attention", linear}}}}));
  EXPECT_EQ(nested.layer_kind(0).rope_theta, 1e4f);
  EXPECT_EQ(nested.layer_kind(5).rope_theta, 1e6f);
  EXPECT_EQ(nested.layer_kind(5).rope_scaling.factor, 8.0f);
  ExpectRefusedAs(
      kGemma3,
      {{"rope_scaling", {{"type", "linear"}, {"factor", 8.0}}}, {"sliding_window_pattern", 1}},
      "rope_scaling.type is given without rope_type");
  ExpectRefusedAs(kGemma3, {{"rope_parameters", linear}},
                  "rope_parameters must have an object for each type of layers");
  ExpectRefusedAs(kGemma3, {{"rope_scaling", {{"full_attention", linear}}}},
                  "rope_scaling has objects for types of layers");
  for (const char* architecture : {kGemma, kGemma2, kPhi3, kSmolLm3, kGranite, kOlmo2}) {
    ExpectRefusedAs(architecture, {{"rope_parameters", {{"full_attention", linear}}}},
                    "rope_parameters has objects for types of layers");
  }
}

TEST_F(HfFamiliesTest, Gemma3MayBePartOfAModelThatSees) {
  const json text = {{"model_type", "gemma3_text"}, {"hidden_size", 64}, {"num_hidden_layers", 2}};
  const json outer = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                      {"model_type", "gemma3"},
                      {"vision_config", {{"hidden_size", 32}}}};
  const auto with_text = [&](const json& more) {
    return With(outer, {{"text_config", With(text, more)}});
  };
  support::WriteFile(path_, with_text(json::object()).dump());
  const auto model = ReadHfModel(path_);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->has_vision);
  EXPECT_EQ(model->config.architecture, kGemma3);
  EXPECT_EQ(model->config.hidden_size, 64u);
  EXPECT_EQ(model->config.num_attention_heads, 8u);
  EXPECT_TRUE(model->config.tie_word_embeddings);
  const auto expect_refused = [&](const json& config, std::string_view reason) {
    const auto read = Read(config);
    ASSERT_FALSE(read) << config;
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr(reason));
  };
  expect_refused(outer, "text_config must be an object");
  expect_refused(with_text({{"model_type", "llama"}}), "text_config.model_type is \"llama\"");
  expect_refused(With(with_text({{"tie_word_embeddings", false}}), {{"tie_word_embeddings", true}}),
                 "text_config.tie_word_embeddings contradicts");
  const auto untied = Read(with_text({{"tie_word_embeddings", false}}));
  ASSERT_TRUE(untied) << untied.error().message();
  EXPECT_FALSE(untied->tie_word_embeddings);
  // This class does not cap logits.
  expect_refused(with_text({{"final_logit_softcapping", 30.0}}),
                 "text_config.final_logit_softcapping is 30");
  expect_refused(with_text({{"hidden_size", "64"}}), "text_config.hidden_size is \"64\"");
}

TEST_F(HfFamiliesTest, LongropeHasTwoListsOfFactors) {
  const json lists = {{"short_factor", {1.0, 1.5}}, {"long_factor", {1.0, 4.0}}};
  const auto read = [&](const json& rope, const json& fields = json::object()) {
    return ReadModel(kPhi3, With(fields, {{"rope_scaling", With(lists, rope)}}))
        .config.layer_kinds[0]
        .rope_scaling;
  };
  for (const char* type : {"longrope", "su", "yarn"}) {
    const RopeScaling scaling = read({{"type", type}}, {{"original_max_position_embeddings", 16}});
    EXPECT_EQ(scaling.type, RopeScaling::Type::kLongrope);
    EXPECT_EQ(scaling.short_factor, (std::vector<float>{1.0f, 1.5f}));
    EXPECT_EQ(scaling.long_factor, (std::vector<float>{1.0f, 4.0f}));
    EXPECT_EQ(scaling.original_max_position_embeddings, 16u);
    EXPECT_FLOAT_EQ(scaling.attention_factor, std::sqrt(1.5f));  // 1 + ln 4 / ln 16
  }
  // Phi 3 has the original context beside the object, or 4096.
  EXPECT_EQ(read({{"type", "longrope"}, {"original_max_position_embeddings", 16}})
                .original_max_position_embeddings,
            4096u);
  EXPECT_EQ(read({{"type", "longrope"}}).attention_factor, 1.0f);
  EXPECT_EQ(read({{"type", "longrope"}, {"attention_factor", 1.25}}).attention_factor, 1.25f);
  EXPECT_FLOAT_EQ(read({{"type", "longrope"}, {"factor", 4096.0}}).attention_factor,
                  std::sqrt(2.0f));
  const auto expect_refused = [&](const json& rope, std::string_view reason) {
    ExpectRefusedAs(kPhi3, {{"rope_scaling", With(lists, rope)}}, reason);
  };
  expect_refused({{"type", "longrope"}, {"short_factor", {1.0}}}, "short_factor has 1 numbers");
  expect_refused({{"type", "longrope"}, {"long_factor", nullptr}}, "long_factor is missing");
  expect_refused({{"type", "longrope"}, {"long_factor", {1.0, 0.0}}}, "long_factor has 0.0");
  expect_refused({{"type", "longrope"}, {"long_factor", {1.0, "2"}}}, "long_factor has \"2\"");
  expect_refused({{"type", "longrope"}, {"short_mscale", 1.1}}, "short_mscale is given");
  expect_refused({{"type", "linear"}, {"factor", 4.0}}, "rope_scaling.type is \"linear\"");
  expect_refused({{"type", "default"}}, "rope_scaling.long_factor is given");
}

TEST_F(HfFamiliesTest, Phi3MayRotateAPartOfEachHead) {
  const json heads_of_16 = {{"head_dim", 16}};
  const auto rotary_dim = [&](const json& fields) {
    return ReadModel(kPhi3, With(heads_of_16, fields)).config.rotary_dim;
  };
  EXPECT_EQ(rotary_dim(json::object()), 0u);
  EXPECT_EQ(rotary_dim({{"partial_rotary_factor", 1.0}}), 0u);
  EXPECT_EQ(rotary_dim({{"partial_rotary_factor", 0.75}}), 12u);
  EXPECT_EQ(
      rotary_dim({{"partial_rotary_factor", 0.75},
                  {"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}}),
      8u);
  for (const json& factor : {json(0.0), json(-0.5), json(1.5), json(0.7), json("0.5")}) {
    ExpectRefusedAs(kPhi3, With(heads_of_16, {{"partial_rotary_factor", factor}}),
                    "partial_rotary_factor is");
  }
  ExpectRefusedAs(kSmolLm3, {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor is 0.5");
  // The factor that goes with longrope is then one of a part of the scores.
  const HfModel model = ReadModel(
      kPhi3, {{"head_dim", 16},
              {"partial_rotary_factor", 0.25},
              {"original_max_position_embeddings", 16},
              {"rope_scaling",
               {{"type", "longrope"}, {"short_factor", {1.0, 1.0}}, {"long_factor", {1.0, 2.0}}}}});
  EXPECT_EQ(model.config.rotary_dim, 4u);
  EXPECT_EQ(model.config.layer_kinds[0].rope_scaling.attention_factor, 1.0f);
  EXPECT_NEAR(model.folding.rotated_score_factor, 1.5, 1e-6);
}

TEST_F(HfFamiliesTest, BiasesAreThoseOfTheFamily) {
  for (const char* architecture : {kGemma, kGemma2, kGemma3, kSmolLm3, kGranite, kOlmo2}) {
    const ModelConfig config = ReadModel(architecture, {{"attention_bias", true}}).config;
    EXPECT_TRUE(config.qkv_bias && config.o_bias) << architecture;
    EXPECT_FALSE(config.mlp_bias) << architecture;
  }
  ExpectRefusedAs(kPhi3, {{"attention_bias", true}}, "attention_bias is true");
  for (const char* architecture : {kSmolLm3, kGranite}) {
    EXPECT_TRUE(ReadModel(architecture, {{"mlp_bias", true}}).config.mlp_bias);
  }
  for (const char* architecture : {kGemma, kGemma2, kGemma3, kPhi3, kOlmo2}) {
    ExpectRefusedAs(architecture, {{"mlp_bias", true}}, "mlp_bias is true");
  }
}

}  // namespace
}  // namespace cria
