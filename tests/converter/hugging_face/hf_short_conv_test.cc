// What the classes of LFM2 in transformers make of their fields, and what is refused because it
// would compute something else.

#include <gtest/gtest.h>

#include <cmath>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr const char* kLfm2 = "Lfm2ForCausalLM";
const json kTypes = {{"layer_types", {"conv", "full_attention"}}};

class HfShortConvTest : public HfConfigFixture {
 protected:
  ModelConfig Config(const char* architecture, const json& fields) {
    const auto read = ReadAs(architecture, With(kTypes, fields));
    EXPECT_TRUE(read) << fields << ": " << read.error().message();
    return read.value_or(ModelConfig{});
  }
  uint32_t Width(const json& fields) { return Config(kLfm2, fields).intermediate_size; }
  // For each layer, whether it is a convolution.
  std::string Layers(const json& fields) {
    const auto config = ReadAs(kLfm2, fields);
    EXPECT_TRUE(config) << config.error().message();
    std::string text;
    for (size_t i = 0; config && i < config->num_hidden_layers; ++i) {
      text += config->layer_kind(i).short_conv ? 'c' : 'a';
    }
    return text;
  }
};

TEST_F(HfShortConvTest, AbsentFieldsHaveTheDefaultsOfTheClass) {
  const ModelConfig config = Config(kLfm2, json::object());
  EXPECT_EQ(config.conv_L_cache, 3u);
  EXPECT_FALSE(config.conv_bias);
  EXPECT_TRUE(config.qk_norm);
  EXPECT_FALSE(config.qkv_bias);
  // The tiny configuration has an rms_norm_eps that the class does not read.
  EXPECT_EQ(config.rms_norm_eps, 1e-5f);
  EXPECT_EQ(Config(kLfm2, {{"norm_eps", 1e-3}}).rms_norm_eps, 1e-3f);
  EXPECT_EQ(config.layer_kind(0), (LayerKind{.rope_theta = config.layer_kind(1).rope_theta,
                                             .no_rope = true,
                                             .short_conv = true}));
}

TEST_F(HfShortConvTest, TheWidthIsAdjustedAsTheClassDoes) {
  const json wide = {{"intermediate_size", 300}};
  EXPECT_EQ(Width(wide), 256u);
  EXPECT_EQ(Width(With(wide, {{"block_multiple_of", 1}})), 200u);
  EXPECT_EQ(Width(With(wide, {{"block_multiple_of", 32}})), 224u);
  EXPECT_EQ(Width(With(wide, {{"block_multiple_of", 1}, {"block_ffn_dim_multiplier", 1.309}})),
            261u);
  EXPECT_EQ(Width(With(wide, {{"block_auto_adjust_ff_dim", false}})), 300u);
  EXPECT_EQ(Width(With(wide, {{"block_ff_dim", 400}, {"block_multiple_of", 1}})), 266u);
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_multiple_of", 0}}), "block_multiple_of is 0");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_ffn_dim_multiplier", -1.0}}),
                  "block_ffn_dim_multiplier is -1");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_ffn_dim_multiplier", 1e30}}),
                  "block_ffn_dim_multiplier");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_ffn_dim_multiplier", 0.0}}),
                  "intermediate_size is 0");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_ffn_dim_multiplier", nullptr}}),
                  "block_ffn_dim_multiplier is null");
}

TEST_F(HfShortConvTest, LayersAreGivenByTypesOrIndices) {
  EXPECT_EQ(Layers(kTypes), "ca");
  EXPECT_EQ(Layers({{"num_hidden_layers", 4}, {"full_attn_idxs", {3, 1}}}), "caca");
  EXPECT_EQ(Layers(json::object()), "aa");
  // As in the class, the types have precedence.
  EXPECT_EQ(Layers(With(kTypes, {{"full_attn_idxs", {0}}})), "ca");
  ExpectRefusedAs(kLfm2, {{"full_attn_idxs", {2}}}, "full_attn_idxs has 2");
  ExpectRefusedAs(kLfm2, {{"full_attn_idxs", {-1}}}, "full_attn_idxs has -1");
  ExpectRefusedAs(kLfm2, {{"full_attn_idxs", 1}}, "full_attn_idxs");
  ExpectRefusedAs(kLfm2, {{"full_attn_idxs", json::array()}}, "short_conv is true for every layer");
  ExpectRefusedAs(kLfm2, {{"layer_types", {"conv"}}}, "layer_types has 1 entries");
  ExpectRefusedAs(kLfm2, {{"layer_types", {"conv", "sliding_attention"}}},
                  "layer_types has \"sliding_attention\"");
  ExpectRefusedAs("LlamaForCausalLM", {{"num_hidden_layers", 2}, {"use_pos_enc", false}},
                  "use_pos_enc");
}

TEST_F(HfShortConvTest, ModelsWithoutConvolutionsHaveNoTaps) {
  const auto config = ReadAs(kLfm2, {{"conv_L_cache", 3}, {"conv_bias", true}});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->conv_L_cache, 0u);
  EXPECT_FALSE(config->conv_bias);
}

TEST_F(HfShortConvTest, TheHeadIsTiedUnderTwoNames) {
  json fields = With(support::TinyConfig(), kTypes);
  fields["architectures"] = {kLfm2};
  fields.erase("tie_word_embeddings");
  EXPECT_TRUE(Read(fields).value_or(ModelConfig{}).tie_word_embeddings);
  fields["tie_embedding"] = false;
  const auto untied = Read(fields);
  ASSERT_TRUE(untied) << untied.error().message();
  EXPECT_FALSE(untied->tie_word_embeddings);
  ExpectRefusedAs(kLfm2, With(kTypes, {{"tie_embedding", false}}),
                  "tie_embedding contradicts tie_word_embeddings");
}

TEST_F(HfShortConvTest, RefusesWhatTheClassDoesNotCompute) {
  ExpectRefusedAs(kLfm2, With(kTypes, {{"conv_L_cache", 0}}), "conv_L_cache is 0");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"conv_L_cache", 65}}), "conv_L_cache is 65");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"conv_L_cache", nullptr}}), "conv_L_cache is null");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"conv_bias", 1}}), "conv_bias");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"hidden_act", "gelu"}}), "hidden_act is not silu");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"block_use_swiglu", false}}), "block_use_swiglu");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"num_experts", 4}}), "num_experts");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"attention_bias", true}}), "attention_bias");
}

constexpr const char* kLfm2Moe = "Lfm2MoeForCausalLM";

TEST_F(HfShortConvTest, TheMixtureHasDefaultsOfItsOwn) {
  const ModelConfig config = Config(
      kLfm2Moe, {{"num_hidden_layers", 3}, {"layer_types", {"conv", "conv", "full_attention"}}});
  EXPECT_EQ(config.num_experts, 32u);
  EXPECT_EQ(config.num_experts_per_tok, 4u);
  EXPECT_EQ(config.moe_intermediate_size, 1792u);
  EXPECT_EQ(config.intermediate_size, 20u);
  EXPECT_EQ(config.scoring_func, ScoringFunc::kSigmoid);
  EXPECT_TRUE(config.norm_topk_prob && config.use_expert_bias);
  EXPECT_TRUE(config.layer_kind(1).dense_mlp);
  EXPECT_FALSE(config.layer_kind(2).dense_mlp);
  ExpectRefusedAs(kLfm2Moe, json::object(), "layer_types is missing");
  ExpectRefusedAs(kLfm2Moe, kTypes, "num_dense_layers leaves no layer with experts");
  const json mixture = With(kTypes, {{"num_dense_layers", 0}});
  ExpectRefusedAs(kLfm2Moe, With(mixture, {{"routed_scaling_factor", 0.0}}),
                  "routed_scaling_factor is 0");
  ExpectRefusedAs(kLfm2Moe, With(mixture, {{"num_local_experts", 4}}), "num_local_experts");
  ExpectRefusedAs(kLfm2Moe, With(mixture, {{"num_experts_per_tok", 33}}), "num_experts_per_tok");
  ExpectRefusedAs(kLfm2Moe, With(mixture, {{"use_expert_bias", 1}}), "use_expert_bias");
  ExpectRefusedAs("LlamaForCausalLM", {{"use_expert_bias", true}}, "use_expert_bias");
  ExpectRefusedAs(kLfm2, With(kTypes, {{"routed_scaling_factor", 2.0}}), "routed_scaling_factor");
}

TEST_F(HfShortConvTest, Lfm3HasParametersOfItsOwn) {
  constexpr const char* kLfm3 = "Lfm3ForCausalLM";
  const auto read = ReadAs(kLfm3, {{"num_hidden_layers", 6}, {"max_position_embeddings", 1024}});
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->conv_L_cache, 7u);
  EXPECT_EQ(read->head_dim, 128u);
  EXPECT_EQ(read->norm_placement, NormPlacement::kBeforeAndAfter);
  EXPECT_TRUE(read->use_attention_gate && read->qk_norm);
  EXPECT_EQ(read->layer_kinds.size(), 3u);
  EXPECT_TRUE(read->layer_kind(0).short_conv && read->layer_kind(5).short_conv);
  const LayerKind& full = read->layer_kind(2);
  EXPECT_EQ(full.rope_theta, 1e6f);
  EXPECT_EQ(full.rope_scaling.type, RopeScaling::Type::kProportional);
  EXPECT_EQ(full.rope_scaling.partial_rotary_factor, 0.5f);
  EXPECT_EQ(full.sliding_window, 0u);
  const LayerKind& sliding = read->layer_kind(4);
  EXPECT_EQ(sliding.sliding_window, 256u);
  EXPECT_EQ(sliding.rope_theta, 1e4f);
  EXPECT_EQ(sliding.rope_scaling.type, RopeScaling::Type::kNone);
  const auto plain = ReadAs(
      kLfm3,
      {{"layer_types", {"conv", "full_attention"}},
       {"use_sandwich_norm", false},
       {"use_attention_gate", false},
       {"attention_bias", true},
       {"rms_norm_eps", 1e-3},
       {"head_dim", 20},
       {"rope_parameters",
        {{"full_attention",
          {{"rope_type", "proportional"}, {"factor", 4.0}, {"partial_rotary_factor", 0.7}}}}}});
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->norm_placement, NormPlacement::kBefore);
  EXPECT_TRUE(plain->qkv_bias && plain->o_bias);
  EXPECT_FALSE(plain->use_attention_gate);
  EXPECT_EQ(plain->rms_norm_eps, 1e-3f);
  // Seven pairs, although the product with a float of 0.7 is less than 7.
  const float part = plain->layer_kind(1).rope_scaling.partial_rotary_factor;
  EXPECT_EQ(std::floor(double{part} * 10.0), 7.0);
  const json layers = {{"layer_types", {"sliding_attention", "full_attention"}}};
  ExpectRefusedAs(kLfm3, With(layers, {{"sliding_window", nullptr}}), "gives no window");
  ExpectRefusedAs(kLfm3, With(layers, {{"rope_theta", 1e4}}), "rope_theta");
  ExpectRefusedAs(kLfm3, With(layers, {{"rope_parameters", {{"rope_theta", 1e4}}}}),
                  "must be an object");
  for (const double part_of_pairs : {0.0, -0.5, 1.5}) {
    ExpectRefusedAs(
        kLfm3,
        {{"layer_types", {"conv", "full_attention"}},
         {"rope_parameters",
          {{"full_attention",
            {{"rope_type", "proportional"}, {"partial_rotary_factor", part_of_pairs}}}}}},
        "partial_rotary_factor");
  }
  ExpectRefusedAs(kLfm3, With(layers, {{"layer_types", {"conv", "chunked_attention"}}}),
                  "conv, full_attention and sliding_attention");
  ExpectRefusedAs("LlamaForCausalLM",
                  {{"rope_parameters", {{"rope_type", "proportional"}, {"rope_theta", 1e4}}}},
                  "is \"proportional\"");
}

}  // namespace
}  // namespace cria
