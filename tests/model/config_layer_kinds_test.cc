// Layers of several kinds, short convolutions among them.

#include "model/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/refused_config.h"
#include "support/llama_config.h"

namespace cria {
namespace {

using support::Llama32Of1B;

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

TEST(ConfigLayerKindsTest, LayersMayBeOfSeveralKinds) {
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

TEST(ConfigLayerKindsTest, EveryLayerHasAKindAndEveryKindALayer) {
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

TEST(ConfigLayerKindsTest, EveryKindIsChecked) {
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
TEST(ConfigLayerKindsTest, FullAttentionLimitsTheContext) {
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

TEST(ConfigLayerKindsTest, ShortConvolutionsHaveNoAttention) {
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

TEST(ConfigLayerKindsTest, LinearAttentionHasSizesOfItsOwn) {
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

TEST(ConfigLayerKindsTest, ALayerThatGuessesNeedsAKnownModel) {
  ModelConfig valid = WithLinearAttention();
  valid.mtp_num_hidden_layers = 1;
  EXPECT_TRUE(ValidateConfig(valid));
  EXPECT_EQ(valid.num_stored_layers(), valid.num_hidden_layers + 1);
  EXPECT_TRUE(valid.layer_kind(valid.num_hidden_layers).has_attention());
  const auto refused = [&](void (*change)(ModelConfig& config)) {
    ModelConfig config = valid;
    change(config);
    ExpectRefused(config, "mtp_num_hidden_layers is given", ErrorCode::kUnsupported);
  };
  refused([](ModelConfig& c) { c.qkv_bias = true; });
  refused([](ModelConfig& c) { c.norm_placement = NormPlacement::kBeforeAndAfter; });
  refused([](ModelConfig& c) { c.layer_kinds[1].sliding_window = 64; });
  refused([](ModelConfig& c) { c.layer_scalar = true; });
  refused([](ModelConfig& c) { c.final_logit_softcapping = 30.0f; });
  ModelConfig several = valid;
  several.mtp_num_hidden_layers = 2;
  ExpectRefused(several, "mtp_num_hidden_layers is 2");
  ModelConfig attends = WithKinds({{.rope_theta = 1e6f}, {.rope_theta = 1e4f}});
  attends.mtp_num_hidden_layers = 1;
  ExpectRefused(attends, "mtp_num_hidden_layers is given", ErrorCode::kUnsupported);
}

ModelConfig WithMamba() {
  const LayerKind attention = {.rope_theta = 1e6f};
  const LayerKind mamba = {.rope_theta = 1e6f, .no_rope = true, .mamba = true};
  ModelConfig config = WithKinds({mamba, attention});
  config.mamba_d_conv = 4;
  config.mamba_d_state = 128;
  config.mamba_d_head = 64;
  config.mamba_n_heads = 48;
  config.mamba_n_groups = 2;
  return config;
}

TEST(ConfigLayerKindsTest, MambaHasSizesOfItsOwn) {
  const ModelConfig valid = WithMamba();
  EXPECT_TRUE(ValidateConfig(valid));
  EXPECT_TRUE(valid.has_recurrent_layers());
  EXPECT_EQ(valid.mamba_conv_channels(), 48u * 64 + 2 * 256);
  EXPECT_EQ(valid.mamba_in_channels(), 2 * 48u * 64 + 2 * 256);
  struct Case {
    const char* words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"mamba_d_conv is 0", [](ModelConfig& c) { c.mamba_d_conv = 0; }},
      {"mamba_d_conv is 65", [](ModelConfig& c) { c.mamba_d_conv = 65; }},
      {"mamba_d_state is 0", [](ModelConfig& c) { c.mamba_d_state = 0; }},
      {"mamba_d_state is 257", [](ModelConfig& c) { c.mamba_d_state = 257; }},
      {"mamba_d_head is 0", [](ModelConfig& c) { c.mamba_d_head = 0; }},
      {"mamba_n_heads is 0", [](ModelConfig& c) { c.mamba_n_heads = 0; }},
      {"mamba_n_groups is 0", [](ModelConfig& c) { c.mamba_n_groups = 0; }},
      {"mamba_n_heads (48) is not a multiple of mamba_n_groups (5)",
       [](ModelConfig& c) { c.mamba_n_groups = 5; }},
      {"Mamba has rows of 1049088 channels",
       [](ModelConfig& c) {
         c.mamba_n_heads = 1024;
         c.mamba_d_head = 512;
       }},
      {"layer_kinds[0].no_rope is false", [](ModelConfig& c) { c.layer_kinds[0].no_rope = false; }},
      {"layer_kinds[0].mamba is true, but short_conv is true",
       [](ModelConfig& c) {
         c.layer_kinds[0].short_conv = true;
         c.conv_L_cache = 3;
       }},
      {"mamba is false for every layer", [](ModelConfig& c) { c.layer_kinds[0].mamba = false; }},
      {"mamba is false for every layer", [](ModelConfig& c) {
         c = WithLinearAttention();
         c.mamba_conv_bias = true;
       }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithMamba();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
  ModelConfig config = WithMamba();
  config.layer_kinds[1] = config.layer_kinds[0];
  config.layer_kinds[1].rope_theta = 1e4f;
  ExpectRefused(config, "mamba is true for every layer", ErrorCode::kUnsupported);
}

ModelConfig WithSinks() {
  ModelConfig config =
      WithKinds({{.sliding_window = 16, .rope_theta = 1e6f}, {.rope_theta = 1e6f}});
  config.num_experts = 8;
  config.num_experts_per_tok = 2;
  config.moe_intermediate_size = 32;
  config.norm_topk_prob = true;
  config.attn_sinks = config.router_bias = config.experts_bias = true;
  config.swiglu_alpha = 1.702f;
  config.swiglu_limit = 7.0f;
  return config;
}

TEST(ConfigLayerKindsTest, SinksAndBiasesOfExpertsHaveRelations) {
  EXPECT_TRUE(ValidateConfig(WithSinks()));
  struct Case {
    const char* words;
    ErrorCode code;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"attn_sinks is true, which this version only knows with heads that are rotated whole",
       ErrorCode::kUnsupported, [](ModelConfig& c) { c.layer_kinds[1].no_rope = true; }},
      {"attn_sinks is true", ErrorCode::kUnsupported, [](ModelConfig& c) { c.rotary_dim = 8; }},
      {"one of swiglu_alpha and swiglu_limit is 0", ErrorCode::kInvalidFile,
       [](ModelConfig& c) { c.swiglu_alpha = 0.0f; }},
      {"hidden_act is not silu", ErrorCode::kUnsupported,
       [](ModelConfig& c) { c.hidden_act = HiddenAct::kGelu; }},
      {"router_bias is true", ErrorCode::kUnsupported,
       [](ModelConfig& c) { c.scoring_func = ScoringFunc::kSigmoid; }},
      {"beside a dense feed-forward or a shared expert", ErrorCode::kUnsupported,
       [](ModelConfig& c) { c.shared_expert_intermediate_size = 32; }},
      {"beside a dense feed-forward or a shared expert", ErrorCode::kUnsupported,
       [](ModelConfig& c) { c.layer_kinds[1].dense_mlp = true; }},
      {"num_experts is 0, but there are other fields", ErrorCode::kInvalidFile, [](ModelConfig& c) {
         c.num_experts = c.num_experts_per_tok = c.moe_intermediate_size = 0;
         c.norm_topk_prob = false;
       }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithSinks();
    bad.change(config);
    ExpectRefused(config, bad.words, bad.code);
  }
}

TEST(ConfigLayerKindsTest, ShortConvolutionsDoNotLimitTheContext) {
  ModelConfig config = WithShortConv();
  config.layer_kinds[1].rope_scaling = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  EXPECT_EQ(config.longest_context(), 131072u);
  config.layer_kinds[1].sliding_window = 64;
  EXPECT_EQ(config.longest_context(), 131072u);
}

}  // namespace
}  // namespace cria
