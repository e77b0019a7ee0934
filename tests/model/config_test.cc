#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/llama_config.h"

namespace cria {
namespace {

using support::Llama32Of1B;

void ExpectRefused(const ModelConfig& config, const std::string& field,
                   ErrorCode code = ErrorCode::kInvalidFile) {
  const Status status = ValidateConfig(config);
  ASSERT_FALSE(status) << field;
  EXPECT_EQ(status.error().code(), code);
  EXPECT_NE(status.error().message().find(field), std::string::npos) << status.error().message();
}

TEST(ModelConfigTest, ARealConfigurationIsSound) {
  const ModelConfig config = Llama32Of1B();
  const Status status = ValidateConfig(config);
  EXPECT_TRUE(status) << status.error().message();
  EXPECT_EQ(config.query_channels(), 2048u);
  EXPECT_EQ(config.key_value_channels(), 512u);
  EXPECT_EQ(config.qkv_channels(), 3072u);
}

TEST(ModelConfigTest, ChannelCountsDoNotOverflow) {
  ModelConfig config = Llama32Of1B();
  config.num_attention_heads = config.num_key_value_heads = config.head_dim = 1024;
  ASSERT_TRUE(ValidateConfig(config));
  EXPECT_EQ(config.qkv_channels(), 3u << 20);
  config.head_dim = 1025;
  EXPECT_FALSE(ValidateConfig(config));
}

TEST(ModelConfigTest, EveryIntegerHasBoundsThatAreNamed) {
  struct Field {
    const char* name;
    uint32_t ModelConfig::* member;
    uint32_t least;
    uint32_t most;
  };
  const std::vector<Field> fields = {
      {"hidden_size", &ModelConfig::hidden_size, 2, 1u << 17},
      {"intermediate_size", &ModelConfig::intermediate_size, 1, 1u << 19},
      {"num_hidden_layers", &ModelConfig::num_hidden_layers, 1, 1024},
      {"num_attention_heads", &ModelConfig::num_attention_heads, 8, 1024},
      {"num_key_value_heads", &ModelConfig::num_key_value_heads, 1, 32},
      {"head_dim", &ModelConfig::head_dim, 2, 1024},
      {"vocab_size", &ModelConfig::vocab_size, 1, 1u << 22},
      {"max_position_embeddings", &ModelConfig::max_position_embeddings, 1, 1u << 24}};
  for (const Field& field : fields) {
    SCOPED_TRACE(field.name);
    ModelConfig config = Llama32Of1B();
    config.*field.member = field.least;
    EXPECT_TRUE(ValidateConfig(config));
    config.*field.member = field.most;
    EXPECT_TRUE(ValidateConfig(config));
    config.*field.member = 0;
    ExpectRefused(config, field.name);
    config.*field.member = field.most + 1;
    ExpectRefused(config, field.name);
    config.*field.member = std::numeric_limits<uint32_t>::max();
    ExpectRefused(config, field.name);
  }
}

TEST(ModelConfigTest, AWindowMayBeAbsentButNotHuge) {
  ModelConfig config = Llama32Of1B();
  for (const uint32_t window : {0u, 1u, 4096u, 1u << 24}) {
    config.layer_kinds[0].sliding_window = window;
    EXPECT_TRUE(ValidateConfig(config)) << window;
  }
  for (const uint32_t window : {(1u << 24) + 1, ~0u}) {
    config.layer_kinds[0].sliding_window = window;
    ExpectRefused(config, "sliding_window");
  }
}

TEST(ModelConfigTest, RealNumbersMustBePositiveAndFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.0f, -1.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(value);
    ModelConfig config = Llama32Of1B();
    config.rms_norm_eps = value;
    ExpectRefused(config, "rms_norm_eps");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_theta = value;
    ExpectRefused(config, "rope_theta");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.factor = value;
    ExpectRefused(config, "rope_scaling.factor");
    config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
    ExpectRefused(config, "rope_scaling.factor");
    config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kNone;
    EXPECT_TRUE(ValidateConfig(config));
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.low_freq_factor = value;
    ExpectRefused(config, "rope_scaling.low_freq_factor");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.high_freq_factor = value;
    ExpectRefused(config, "rope_scaling.high_freq_factor");
  }
}

TEST(ModelConfigTest, Llama3ScalingNeedsItsOtherFieldsAndLinearDoesNot) {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling.high_freq_factor =
      config.layer_kinds[0].rope_scaling.low_freq_factor;
  ExpectRefused(config, "high_freq_factor");
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_TRUE(ValidateConfig(config));
  config = Llama32Of1B();
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config.layer_kinds[0].rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

TEST(ModelConfigTest, SoftCapsArePositiveOrAbsent) {
  for (float ModelConfig::* cap :
       {&ModelConfig::attn_logit_softcapping, &ModelConfig::final_logit_softcapping}) {
    const bool is_final = cap == &ModelConfig::final_logit_softcapping;
    const std::string name = is_final ? "final_logit_softcapping" : "attn_logit_softcapping";
    ModelConfig config = Llama32Of1B();
    config.*cap = 50.0f;
    EXPECT_TRUE(ValidateConfig(config));
    for (const float value :
         {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      config.*cap = value;
      ExpectRefused(config, name);
    }
  }
}

TEST(ModelConfigTest, UnknownEnumeratorsNeedANewerVersion) {
  ModelConfig config = Llama32Of1B();
  config.hidden_act = static_cast<HiddenAct>(3);
  ExpectRefused(config, "hidden_act is 3", ErrorCode::kUnsupported);
  config = Llama32Of1B();
  config.norm_placement = static_cast<NormPlacement>(3);
  ExpectRefused(config, "norm_placement is 3", ErrorCode::kUnsupported);
}

TEST(ModelConfigTest, APartOfEachHeadMayBeRotated) {
  ModelConfig config = Llama32Of1B();
  EXPECT_EQ(config.rotary_channels(), config.head_dim);
  for (const uint32_t channels : {2u, 16u, config.head_dim}) {
    config.rotary_dim = channels;
    EXPECT_TRUE(ValidateConfig(config)) << channels;
    EXPECT_EQ(config.rotary_channels(), channels);
  }
  for (const uint32_t channels : {1u, 15u, config.head_dim + 2}) {
    config.rotary_dim = channels;
    ExpectRefused(config, "rotary_dim");
  }
  config.rotary_dim = 2;
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 2.0f};
  ExpectRefused(config, "rotary_dim");
}

TEST(ModelConfigTest, NormsOfHeadsAreSeparateOrJoint) {
  ModelConfig config = Llama32Of1B();
  config.joint_qk_norm = true;
  EXPECT_TRUE(ValidateConfig(config));
  config.qk_norm = true;
  ExpectRefused(config, "joint_qk_norm");
}

ModelConfig WithLongrope() {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling = {
      .type = RopeScaling::Type::kLongrope,
      .original_max_position_embeddings = 4096,
      .attention_factor = 1.19f,
      .short_factor = std::vector<float>(config.head_dim / 2, 1.0f),
      .long_factor = std::vector<float>(config.head_dim / 2, 8.0f)};
  return config;
}

TEST(ModelConfigTest, LongropeHasAFactorForEachPair) {
  ModelConfig config = WithLongrope();
  EXPECT_TRUE(ValidateConfig(config));
  EXPECT_EQ(config.longest_context(), config.max_position_embeddings);
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 1.19f * 1.19f);
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling.short_factor[3] = 0.0f;
  ExpectRefused(config, "rope_scaling.short_factor[3]");
  scaling.short_factor[3] = 1.0f;
  scaling.long_factor.pop_back();
  ExpectRefused(config, "rope_scaling.long_factor has 31 entries");
  scaling.long_factor = scaling.short_factor;
  scaling.original_max_position_embeddings = 0;
  ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  config = WithLongrope();
  config.layer_kinds[0].rope_scaling.attention_factor = 0.0f;
  ExpectRefused(config, "rope_scaling.attention_factor");
}

TEST(ModelConfigTest, AFactorOfScoresNeedsWholeHeadsThatAreRotated) {
  ModelConfig config = WithLongrope();
  config.rotary_dim = 48;
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling.short_factor.resize(24);
  scaling.long_factor.resize(24);
  ExpectRefused(config, "attention_factor");
  scaling.attention_factor = 1.0f;
  EXPECT_TRUE(ValidateConfig(config));
}

TEST(ModelConfigTest, LayersWithoutRopeHaveNoFactorOfIt) {
  LayerKind kind = WithLongrope().layer_kinds[0];
  kind.no_rope = true;
  EXPECT_EQ(kind.score_factor(), 1.0f);
}

ModelConfig WithExperts() {
  ModelConfig config = Llama32Of1B();
  config.num_experts = 8;
  config.num_experts_per_tok = 2;
  config.moe_intermediate_size = 64;
  return config;
}

TEST(ModelConfigTest, FieldsOfExpertsBelongTogether) {
  EXPECT_TRUE(ValidateConfig(WithExperts()));
  struct Case {
    const char* words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"num_experts is 1025", [](ModelConfig& config) { config.num_experts = 1025; }},
      {"num_experts is 0", [](ModelConfig& config) { config.num_experts = 0; }},
      {"num_experts_per_tok is 0", [](ModelConfig& config) { config.num_experts_per_tok = 0; }},
      {"num_experts_per_tok is 9", [](ModelConfig& config) { config.num_experts_per_tok = 9; }},
      {"moe_intermediate_size", [](ModelConfig& config) { config.moe_intermediate_size = 0; }},
      {"shared_expert_gate", [](ModelConfig& config) { config.shared_expert_gate = true; }},
      {"dense_mlp", [](ModelConfig& config) { config.layer_kinds[0].dense_mlp = true; }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithExperts();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
  ModelConfig sigmoid = WithExperts();
  sigmoid.use_expert_bias = true;
  ExpectRefused(sigmoid, "use_expert_bias", ErrorCode::kUnsupported);
  sigmoid.scoring_func = ScoringFunc::kSigmoid;
  EXPECT_TRUE(ValidateConfig(sigmoid));
  sigmoid.scoring_func = static_cast<ScoringFunc>(2);
  ExpectRefused(sigmoid, "scoring_func is 2", ErrorCode::kUnsupported);
  ModelConfig without = Llama32Of1B();
  without.scoring_func = ScoringFunc::kSigmoid;
  ExpectRefused(without, "num_experts is 0");
  ModelConfig biased = WithExperts();
  biased.mlp_bias = true;
  ExpectRefused(biased, "mlp_bias", ErrorCode::kUnsupported);
  ModelConfig dense = Llama32Of1B();
  dense.layer_kinds[0].dense_mlp = true;
  ExpectRefused(dense, "num_experts is 0");
}

ModelConfig WithYarn() {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  return config;
}

TEST(ModelConfigTest, YarnNeedsItsFields) {
  EXPECT_TRUE(ValidateConfig(WithYarn()));
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    ModelConfig config = WithYarn();
    config.layer_kinds[0].rope_scaling.attention_factor = value;
    ExpectRefused(config, "rope_scaling.attention_factor");
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.beta_fast = value;
    ExpectRefused(config, "rope_scaling.beta_fast");
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.beta_slow = value;
    ExpectRefused(config, "rope_scaling.beta_slow");
  }
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.beta_slow = 33.0f;
  ExpectRefused(config, "rope_scaling.beta_fast must not be smaller");
  config = WithYarn();
  config.layer_kinds[0].rope_theta = 1.0f;
  ExpectRefused(config, "rope_theta is 1");
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

TEST(ModelConfigTest, WhatStretchesTheContextDoesNotShrinkIt) {
  for (const auto type : {RopeScaling::Type::kDynamic, RopeScaling::Type::kYarn}) {
    ModelConfig config = WithYarn();
    config.layer_kinds[0].rope_scaling.type = type;
    config.layer_kinds[0].rope_scaling.factor = 0.5f;
    ExpectRefused(config, "rope_scaling.factor is 0.5");
    config.layer_kinds[0].rope_scaling.factor = 1.0f;
    EXPECT_TRUE(ValidateConfig(config));
  }
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kDynamic;
  config.head_dim = 2;
  ExpectRefused(config, "head_dim is 2");
}

TEST(ModelConfigTest, TheLongestContextIsTheStretchedOne) {
  ModelConfig config = WithYarn();
  config.max_position_embeddings = 32768;
  EXPECT_EQ(config.longest_context(), 131072u);
  config.max_position_embeddings = 262144;
  EXPECT_EQ(config.longest_context(), 262144u);
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 2.5f};
  config.max_position_embeddings = 2048;
  EXPECT_EQ(config.longest_context(), 5120u);
  config.layer_kinds[0].rope_scaling.factor = 1e30f;
  EXPECT_EQ(config.longest_context(), 1u << 24);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.longest_context(), 2048u);
}

TEST(ModelConfigTest, OnlyYarnScalesScores) {
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.attention_factor = 1.5f;
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 2.25f);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 1.0f);
}

ModelConfig WithKinds(const std::vector<LayerKind>& kinds) {
  ModelConfig config = Llama32Of1B();
  config.max_position_embeddings = 32768;
  config.layer_kinds = kinds;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    config.kind_of_layer.push_back(static_cast<uint8_t>(i % kinds.size()));
  }
  return config;
}

constexpr LayerKind kFull = {.rope_theta = 1e6f};
constexpr LayerKind kWindowed = {.sliding_window = 1024, .rope_theta = 1e4f};

TEST(ModelConfigTest, LayersMayBeOfSeveralKinds) {
  ModelConfig config = WithKinds({kFull, kWindowed});
  const Status status = ValidateConfig(config);
  EXPECT_TRUE(status) << status.error().message();
  EXPECT_EQ(config.layer_kind(0), kFull);
  EXPECT_EQ(config.layer_kind(15), kWindowed);
  EXPECT_TRUE(ValidateConfig(WithKinds(std::vector<LayerKind>(8, kFull))));
  ExpectRefused(WithKinds(std::vector<LayerKind>(9, kFull)), "layer_kinds must have 1 to 8");
  config.layer_kinds.clear();
  ExpectRefused(config, "layer_kinds must have 1 to 8");
}

TEST(ModelConfigTest, EveryLayerHasAKindAndEveryKindALayer) {
  const ModelConfig sound = WithKinds({kFull, kWindowed});
  ModelConfig config = sound;
  config.kind_of_layer.pop_back();
  ExpectRefused(config, "kind_of_layer has 15 entries, but there are 16 layers of 2 kinds");
  config.kind_of_layer.clear();
  ExpectRefused(config, "kind_of_layer has 0 entries");
  config.kind_of_layer.assign(16, 0);
  ExpectRefused(config, "kind_of_layer has no layer of layer_kinds[1]");
  config = sound;
  config.kind_of_layer[3] = 2;
  ExpectRefused(config, "kind_of_layer names layer_kinds[2], but there are 2");
  config.layer_kinds = {kFull};
  ExpectRefused(config, "kind_of_layer has 16 entries, but there are 16 layers of 1 kinds");
}

TEST(ModelConfigTest, EveryKindIsChecked) {
  for (size_t kind = 0; kind < 2; ++kind) {
    const std::string name = "layer_kinds[" + std::to_string(kind) + "].";
    const auto expect_refused = [&](const auto& change, const std::string& words) {
      ModelConfig config = WithKinds({kFull, kWindowed});
      change(config.layer_kinds[kind]);
      ExpectRefused(config, name + words);
    };
    using enum RopeScaling::Type;
    expect_refused([](LayerKind& k) { k.sliding_window = ~0u; }, "sliding_window");
    expect_refused([](LayerKind& k) { k.rope_theta = -1.0f; }, "rope_theta");
    expect_refused([](LayerKind& k) { k.rope_scaling = {.type = kLinear, .factor = 0.0f}; },
                   "rope_scaling.factor");
    expect_refused([](LayerKind& k) { k.rope_scaling = {kLlama3, 8.0f, 4.0f, 4.0f, 8192}; },
                   "rope_scaling.high_freq_factor must be larger");
    expect_refused([](LayerKind& k) { k.rope_scaling = {.type = kDynamic, .factor = 0.5f}; },
                   "rope_scaling.factor is 0.5");
    expect_refused(
        [](LayerKind& k) {
          k.rope_theta = 1.0f;
          k.rope_scaling = {
              .type = kYarn, .factor = 2.0f, .original_max_position_embeddings = 16384};
        },
        "rope_theta is 1");
  }
}

// Kinds with a window do not limit the context, because they never use longer distances.
TEST(ModelConfigTest, FullAttentionLimitsTheContext) {
  const RopeScaling yarn = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  LayerKind stretched = kFull;
  stretched.rope_scaling = yarn;
  EXPECT_EQ(WithKinds({kFull, kWindowed}).longest_context(), 32768u);
  EXPECT_EQ(WithKinds({stretched, kWindowed}).longest_context(), 131072u);
  EXPECT_EQ(WithKinds({kFull, stretched}).longest_context(), 32768u);
  LayerKind stretched_window = kWindowed;
  stretched_window.rope_scaling = yarn;
  EXPECT_EQ(WithKinds({kFull, stretched_window}).longest_context(), 32768u);
  EXPECT_EQ(WithKinds({kWindowed, stretched_window}).longest_context(), 32768u);
  EXPECT_EQ(WithKinds({stretched_window}).longest_context(), 131072u);
}

ModelConfig WithShortConv() {
  const LayerKind attention = {.rope_theta = 1e6f};
  const LayerKind convolution = {.rope_theta = 1e6f, .no_rope = true, .short_conv = true};
  ModelConfig config = WithKinds({convolution, attention});
  config.conv_L_cache = 3;
  return config;
}

TEST(ModelConfigTest, ShortConvolutionsHaveNoAttention) {
  EXPECT_TRUE(ValidateConfig(WithShortConv()));
  struct Case {
    const char* words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"conv_L_cache is 0", [](ModelConfig& config) { config.conv_L_cache = 0; }},
      {"conv_L_cache is 65", [](ModelConfig& config) { config.conv_L_cache = 65; }},
      {"layer_kinds[0].no_rope is false",
       [](ModelConfig& config) { config.layer_kinds[0].no_rope = false; }},
      {"layer_kinds[0].sliding_window is 8",
       [](ModelConfig& config) { config.layer_kinds[0].sliding_window = 8; }},
      {"layer_kinds[0].rope_scaling is given",
       [](ModelConfig& config) {
         config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kLinear, .factor = 2.0f};
       }},
      {"short_conv is false",
       [](ModelConfig& config) { config.layer_kinds[0].short_conv = false; }},
      {"short_conv is false", [](ModelConfig& config) {
         config.layer_kinds[0].short_conv = false;
         config.conv_L_cache = 0;
         config.conv_bias = true;
       }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithShortConv();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
  ModelConfig config = WithShortConv();
  config.layer_kinds[1] = config.layer_kinds[0];
  config.layer_kinds[1].rope_theta = 1e4f;
  ExpectRefused(config, "short_conv is true for every layer", ErrorCode::kUnsupported);
}

ModelConfig WithLinearAttention() {
  const LayerKind attention = {.rope_theta = 1e6f};
  const LayerKind linear = {.rope_theta = 1e6f, .no_rope = true, .linear_attention = true};
  ModelConfig config = WithKinds({linear, attention});
  config.linear_conv_kernel_dim = 4;
  config.linear_key_head_dim = 128;
  config.linear_value_head_dim = 64;
  config.linear_num_key_heads = 16;
  config.linear_num_value_heads = 32;
  return config;
}

TEST(ModelConfigTest, LinearAttentionHasSizesOfItsOwn) {
  const ModelConfig valid = WithLinearAttention();
  EXPECT_TRUE(ValidateConfig(valid));
  EXPECT_TRUE(valid.has_recurrent_layers());
  EXPECT_EQ(valid.linear_conv_channels(), 2u * 2048 + 2048);
  struct Case {
    const char* words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"linear_conv_kernel_dim is 0", [](ModelConfig& c) { c.linear_conv_kernel_dim = 0; }},
      {"linear_conv_kernel_dim is 65", [](ModelConfig& c) { c.linear_conv_kernel_dim = 65; }},
      {"linear_key_head_dim is 0", [](ModelConfig& c) { c.linear_key_head_dim = 0; }},
      {"linear_key_head_dim is 257", [](ModelConfig& c) { c.linear_key_head_dim = 257; }},
      {"linear_value_head_dim is 0", [](ModelConfig& c) { c.linear_value_head_dim = 0; }},
      {"linear_num_key_heads is 0", [](ModelConfig& c) { c.linear_num_key_heads = 0; }},
      {"linear_num_value_heads is 0", [](ModelConfig& c) { c.linear_num_value_heads = 0; }},
      {"linear_num_value_heads (32) is not a multiple of linear_num_key_heads (5)",
       [](ModelConfig& c) { c.linear_num_key_heads = 5; }},
      {"rows of 528384 channels",
       [](ModelConfig& c) {
         c.linear_num_value_heads = 512;
         c.linear_value_head_dim = 512;
       }},
      {"layer_kinds[0].no_rope is false", [](ModelConfig& c) { c.layer_kinds[0].no_rope = false; }},
      {"layer_kinds[0].linear_attention is true, but short_conv is true",
       [](ModelConfig& c) {
         c.layer_kinds[0].short_conv = true;
         c.conv_L_cache = 3;
       }},
      {"linear_attention is false",
       [](ModelConfig& c) { c.layer_kinds[0].linear_attention = false; }},
      {"attn_output_gate and use_attention_gate are both true", [](ModelConfig& c) {
         c.attn_output_gate = true;
         c.use_attention_gate = true;
       }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithLinearAttention();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
  ModelConfig config = WithLinearAttention();
  config.layer_kinds[1] = config.layer_kinds[0];
  config.layer_kinds[1].rope_theta = 1e4f;
  ExpectRefused(config, "linear_attention is true for every layer", ErrorCode::kUnsupported);
}

TEST(ModelConfigTest, GatesOfTheOutputAreRowsOfTheFusedProjection) {
  ModelConfig config = Llama32Of1B();
  config.attn_output_gate = true;
  EXPECT_EQ(config.qkv_channels(), 3072u + 2048);
}

TEST(ModelConfigTest, APartOfThePairsTurnsProportionally) {
  ModelConfig config = Llama32Of1B();
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling = {.type = RopeScaling::Type::kProportional, .partial_rotary_factor = 0.5f};
  EXPECT_TRUE(ValidateConfig(config));
  scaling.partial_rotary_factor = 1.5f;
  ExpectRefused(config, "partial_rotary_factor must be at most 1");
  scaling.partial_rotary_factor = 0.0f;
  ExpectRefused(config, "partial_rotary_factor is 0");
  scaling.partial_rotary_factor = 0.5f;
  config.rotary_dim = 32;
  ExpectRefused(config, "rotary_dim is given, too");
}

TEST(ModelConfigTest, ShortConvolutionsDoNotLimitTheContext) {
  ModelConfig config = WithShortConv();
  config.layer_kinds[1].rope_scaling = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  EXPECT_EQ(config.longest_context(), 131072u);
  config.layer_kinds[1].sliding_window = 64;
  EXPECT_EQ(config.longest_context(), 131072u);
}

TEST(ModelConfigTest, FieldsMustFitOneAnother) {
  ModelConfig config = Llama32Of1B();
  config.num_key_value_heads = 5;
  ExpectRefused(config, "multiple of num_key_value_heads");
  config = Llama32Of1B();
  config.num_key_value_heads = 64;
  ExpectRefused(config, "num_key_value_heads");
  config = Llama32Of1B();
  config.head_dim = 63;
  ExpectRefused(config, "head_dim");
  config = Llama32Of1B();
  config.hidden_size = 2047;
  ExpectRefused(config, "hidden_size", ErrorCode::kUnsupported);
}

TEST(ModelConfigTest, TheNameOfAFamilyDecidesNothing) {
  ModelConfig config = Llama32Of1B();
  for (const char* name : {"MistralForCausalLM", "SomeNewForCausalLM", ""}) {
    config.architecture = name;
    EXPECT_TRUE(ValidateConfig(config)) << name;
  }
}

}  // namespace
}  // namespace cria
