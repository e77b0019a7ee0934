// Reads the config.json of widely used checkpoints whose layers have linear attention.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

class KnownLinearAttentionTest : public HfConfigFixture {};

// Sizes of the published models of Qwen3.5.
struct Qwen35Sizes {
  int hidden_size;
  int intermediate_size;
  int num_hidden_layers;
  int num_attention_heads;
  int num_key_value_heads;
  int linear_num_value_heads;
  bool tie_word_embeddings;
};

json Qwen35Text(const Qwen35Sizes& sizes) {
  json types = json::array();
  for (int i = 1; i <= sizes.num_hidden_layers; ++i) {
    types.push_back(i % 4 == 0 ? "full_attention" : "linear_attention");
  }
  return {{"attention_bias", false},
          {"attention_dropout", 0.0},
          {"attn_output_gate", true},
          {"dtype", "bfloat16"},
          {"eos_token_id", 248044},
          {"full_attention_interval", 4},
          {"head_dim", 256},
          {"hidden_act", "silu"},
          {"hidden_size", sizes.hidden_size},
          {"initializer_range", 0.02},
          {"intermediate_size", sizes.intermediate_size},
          {"layer_types", types},
          {"linear_conv_kernel_dim", 4},
          {"linear_key_head_dim", 128},
          {"linear_num_key_heads", 16},
          {"linear_num_value_heads", sizes.linear_num_value_heads},
          {"linear_value_head_dim", 128},
          {"mamba_ssm_dtype", "float32"},
          {"max_position_embeddings", 262144},
          {"mlp_only_layers", json::array()},
          {"model_type", "qwen3_5_text"},
          {"mtp_num_hidden_layers", 1},
          {"mtp_use_dedicated_embeddings", false},
          {"num_attention_heads", sizes.num_attention_heads},
          {"num_hidden_layers", sizes.num_hidden_layers},
          {"num_key_value_heads", sizes.num_key_value_heads},
          {"output_gate_type", "swish"},
          {"partial_rotary_factor", 0.25},
          {"rms_norm_eps", 1e-6},
          {"rope_parameters",
           {{"mrope_interleaved", true},
            {"mrope_section", {11, 11, 10}},
            {"partial_rotary_factor", 0.25},
            {"rope_theta", 10000000},
            {"rope_type", "default"}}},
          {"tie_word_embeddings", sizes.tie_word_embeddings},
          {"use_cache", true},
          {"vocab_size", 248320}};
}

json WithPictures(const char* architecture, const char* model_type, const json& text) {
  return {{"architectures", {architecture}},
          {"image_token_id", 248056},
          {"model_type", model_type},
          {"text_config", text},
          {"tie_word_embeddings", text.at("tie_word_embeddings")},
          {"video_token_id", 248057},
          {"vision_config", {{"depth", 12}, {"hidden_size", 768}, {"out_hidden_size", 1024}}},
          {"vision_end_token_id", 248054},
          {"vision_start_token_id", 248053}};
}

TEST_F(KnownLinearAttentionTest, Qwen35) {
  const Qwen35Sizes all_sizes[] = {{1024, 3584, 24, 8, 2, 16, true},
                                   {2560, 9216, 32, 16, 4, 32, true},
                                   {5120, 17408, 64, 24, 4, 48, false}};
  for (const Qwen35Sizes& sizes : all_sizes) {
    const HfModel model =
        ReadModel(WithPictures("Qwen3_5ForConditionalGeneration", "qwen3_5", Qwen35Text(sizes)));
    EXPECT_TRUE(model.has_vision && model.has_mtp);
    EXPECT_TRUE(model.folding.adds_one_to_norms);
    EXPECT_EQ(model.folding.embedding_multiplier, 1.0);
    const ModelConfig& config = model.config;
    EXPECT_EQ(config.architecture, "Qwen3_5ForCausalLM");
    EXPECT_EQ(config.tie_word_embeddings, sizes.tie_word_embeddings);
    EXPECT_TRUE(config.qk_norm && config.attn_output_gate && !config.qkv_bias);
    EXPECT_EQ(config.rotary_dim, 64u);
    EXPECT_EQ(config.linear_conv_kernel_dim, 4u);
    EXPECT_EQ(config.linear_num_key_heads, 16u);
    EXPECT_FALSE(config.linear_tiled_value_heads);
    EXPECT_EQ(config.linear_value_channels(),
              static_cast<size_t>(sizes.linear_num_value_heads) * 128);
    EXPECT_EQ(config.longest_context(), 262144u);
    EXPECT_TRUE(config.layer_kind(2).linear_attention);
    EXPECT_FALSE(config.layer_kind(3).linear_attention);
    EXPECT_EQ(config.layer_kind(3).rope_theta, 1e7f);
    EXPECT_EQ(config.layer_kinds.size(), 2u);
    EXPECT_EQ(config.num_experts, 0u);
  }
}

TEST_F(KnownLinearAttentionTest, Qwen35Mixture) {
  json text = Qwen35Text({2048, 0, 40, 16, 2, 32, false});
  text.erase("intermediate_size");
  text.update({{"model_type", "qwen3_5_moe_text"},
               {"moe_intermediate_size", 512},
               {"num_experts", 256},
               {"num_experts_per_tok", 8},
               {"output_router_logits", false},
               {"router_aux_loss_coef", 0.001},
               {"shared_expert_intermediate_size", 512}});
  const ModelConfig config =
      ReadModel(WithPictures("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", text)).config;
  EXPECT_EQ(config.architecture, "Qwen3_5MoeForCausalLM");
  EXPECT_EQ(config.num_experts, 256u);
  EXPECT_TRUE(config.norm_topk_prob && config.shared_expert_gate);
  EXPECT_EQ(config.shared_expert_intermediate_size, 512u);
  EXPECT_FALSE(config.has_dense_layers());
}

TEST_F(KnownLinearAttentionTest, Qwen3Next) {
  const ModelConfig config = ReadModel({{"architectures", {"Qwen3NextForCausalLM"}},
                                        {"attention_dropout", 0.0},
                                        {"bos_token_id", 151643},
                                        {"decoder_sparse_step", 1},
                                        {"eos_token_id", 151645},
                                        {"full_attention_interval", 4},
                                        {"head_dim", 256},
                                        {"hidden_act", "silu"},
                                        {"hidden_size", 2048},
                                        {"initializer_range", 0.02},
                                        {"intermediate_size", 5120},
                                        {"linear_conv_kernel_dim", 4},
                                        {"linear_key_head_dim", 128},
                                        {"linear_num_key_heads", 16},
                                        {"linear_num_value_heads", 32},
                                        {"linear_value_head_dim", 128},
                                        {"max_position_embeddings", 262144},
                                        {"mlp_only_layers", json::array()},
                                        {"model_type", "qwen3_next"},
                                        {"moe_intermediate_size", 512},
                                        {"norm_topk_prob", true},
                                        {"num_attention_heads", 16},
                                        {"num_experts", 512},
                                        {"num_experts_per_tok", 10},
                                        {"num_hidden_layers", 48},
                                        {"num_key_value_heads", 2},
                                        {"output_router_logits", false},
                                        {"partial_rotary_factor", 0.25},
                                        {"rms_norm_eps", 1e-06},
                                        {"rope_scaling", nullptr},
                                        {"rope_theta", 10000000},
                                        {"router_aux_loss_coef", 0.001},
                                        {"shared_expert_intermediate_size", 512},
                                        {"tie_word_embeddings", false},
                                        {"torch_dtype", "bfloat16"},
                                        {"use_cache", true},
                                        {"use_sliding_window", false},
                                        {"vocab_size", 151936}})
                                 .config;
  EXPECT_EQ(config.rotary_dim, 64u);
  EXPECT_EQ(config.num_experts_per_tok, 10u);
  EXPECT_EQ(config.layer_kind(47).rope_theta, 1e7f);
  EXPECT_TRUE(config.layer_kind(46).linear_attention);
  EXPECT_TRUE(config.attn_output_gate);
}

}  // namespace
}  // namespace cria
