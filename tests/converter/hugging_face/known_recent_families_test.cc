// Reads the config.json of widely used checkpoints of the families of 2025 and 2026.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

class KnownRecentFamiliesTest : public HfConfigFixture {};

json Published(const char* architecture, const char* model_type, const std::vector<int>& sizes) {
  return {{"architectures", {architecture}},
          {"model_type", model_type},
          {"attention_dropout", 0.0},
          {"initializer_range", 0.02},
          {"use_cache", true},
          {"torch_dtype", "bfloat16"},
          {"hidden_size", sizes[0]},
          {"intermediate_size", sizes[1]},
          {"num_hidden_layers", sizes[2]},
          {"num_attention_heads", sizes[3]},
          {"num_key_value_heads", sizes[4]},
          {"vocab_size", sizes[5]},
          {"max_position_embeddings", sizes[6]},
          {"rms_norm_eps", 1e-5}};
}

json And(json fields, const json& more) {
  fields.update(more);
  return fields;
}

json Ministral3Text() {
  return And(Published("", "ministral3", {3072, 9216, 26, 32, 8, 131072, 262144}),
             {{"head_dim", 128},
              {"hidden_act", "silu"},
              {"sliding_window", nullptr},
              {"tie_word_embeddings", true},
              {"rope_parameters",
               {{"beta_fast", 32.0},
                {"beta_slow", 1.0},
                {"factor", 16.0},
                {"llama_4_scaling_beta", 0.1},
                {"mscale", 1.0},
                {"mscale_all_dim", 1.0},
                {"original_max_position_embeddings", 16384},
                {"rope_theta", 1000000.0},
                {"rope_type", "yarn"},
                {"type", "yarn"}}}});
}

TEST_F(KnownRecentFamiliesTest, Ministral3) {
  json text = Ministral3Text();
  text.erase("architectures");
  const HfModel model = ReadModel({{"architectures", {"Mistral3ForConditionalGeneration"}},
                                   {"model_type", "mistral3"},
                                   {"image_token_index", 10},
                                   {"multimodal_projector_bias", false},
                                   {"projector_hidden_act", "gelu"},
                                   {"spatial_merge_size", 2},
                                   {"vision_feature_layer", -1},
                                   {"text_config", text},
                                   {"vision_config", {{"model_type", "pixtral"}}}});
  EXPECT_TRUE(model.has_vision);
  EXPECT_EQ(model.config.architecture, "Ministral3ForCausalLM");
  EXPECT_TRUE(model.config.tie_word_embeddings);
  EXPECT_EQ(model.config.llama_4_scaling_beta, 0.1f);
  EXPECT_EQ(model.config.llama_4_scaling_positions, 16384u);
  EXPECT_EQ(model.config.layer_kinds[0].rope_scaling.attention_factor, 1.0f);
  EXPECT_EQ(model.config.longest_context(), 262144u);
  EXPECT_EQ(model.config.query_factor(16383), 1.0f);
  EXPECT_FLOAT_EQ(model.config.query_factor(16384), 1.0f + 0.1f * std::log(2.0f));
}

TEST_F(KnownRecentFamiliesTest, Granite4) {
  const HfModel model = ReadModel(And(Published("GraniteMoeHybridForCausalLM", "granitemoehybrid",
                                                {2560, 8192, 40, 40, 8, 100352, 131072}),
                                      {{"attention_bias", false},
                                       {"attention_multiplier", 0.015625},
                                       {"embedding_multiplier", 12},
                                       {"hidden_act", "silu"},
                                       {"layer_types", std::vector<std::string>(40, "attention")},
                                       {"logits_scaling", 10},
                                       {"mamba_chunk_size", 256},
                                       {"mamba_d_conv", 4},
                                       {"mamba_n_heads", 64},
                                       {"normalization_function", "rmsnorm"},
                                       {"num_experts_per_tok", 0},
                                       {"num_local_experts", 0},
                                       {"position_embedding_type", "rope"},
                                       {"residual_multiplier", 0.22},
                                       {"rope_scaling", nullptr},
                                       {"rope_theta", 10000000},
                                       {"shared_intermediate_size", 8192},
                                       {"tie_word_embeddings", true}}));
  EXPECT_EQ(model.config.intermediate_size, 8192u);
  EXPECT_EQ(model.config.num_experts, 0u);
  EXPECT_FALSE(model.config.layer_kinds[0].no_rope);
  EXPECT_EQ(model.folding.logits_divisor, 10.0);
  EXPECT_EQ(model.folding.score_factor, 0.125);
}

// Tiny and micro: a mixture, and a model without experts.
TEST_F(KnownRecentFamiliesTest, Granite4WithMamba) {
  std::vector<std::string> types(40, "mamba");
  for (const size_t layer : {5, 15, 25, 35}) types[layer] = "attention";
  const json shared = {{"attention_bias", false},
                       {"hidden_act", "silu"},
                       {"layer_types", types},
                       {"mamba_chunk_size", 256},
                       {"mamba_conv_bias", true},
                       {"mamba_d_conv", 4},
                       {"mamba_d_head", 64},
                       {"mamba_d_state", 128},
                       {"mamba_expand", 2},
                       {"mamba_n_groups", 1},
                       {"mamba_proj_bias", false},
                       {"normalization_function", "rmsnorm"},
                       {"position_embedding_type", "nope"},
                       {"residual_multiplier", 0.22},
                       {"rope_scaling", nullptr},
                       {"rope_theta", 10000},
                       {"embedding_multiplier", 12},
                       {"tie_word_embeddings", true}};
  const HfModel tiny =
      ReadModel(And(And(Published("GraniteMoeHybridForCausalLM", "granitemoehybrid",
                                  {1536, 512, 40, 12, 4, 100352, 131072}),
                        shared),
                    {{"attention_multiplier", 0.0078125},
                     {"logits_scaling", 6},
                     {"mamba_n_heads", 48},
                     {"num_experts_per_tok", 6},
                     {"num_local_experts", 64},
                     {"shared_intermediate_size", 1024}}));
  EXPECT_EQ(tiny.config.num_experts, 64u);
  EXPECT_EQ(tiny.config.moe_intermediate_size, 512u);
  EXPECT_EQ(tiny.config.shared_expert_intermediate_size, 1024u);
  EXPECT_EQ(tiny.config.mamba_channels(), 3072u);
  EXPECT_TRUE(tiny.config.layer_kind(0).mamba);
  EXPECT_TRUE(tiny.config.layer_kind(5).has_attention());
  EXPECT_TRUE(tiny.config.layer_kind(5).no_rope);
  const HfModel micro =
      ReadModel(And(And(Published("GraniteMoeHybridForCausalLM", "granitemoehybrid",
                                  {2048, 8192, 40, 32, 8, 100352, 131072}),
                        shared),
                    {{"attention_multiplier", 0.015625},
                     {"logits_scaling", 8},
                     {"mamba_n_heads", 64},
                     {"num_experts_per_tok", 0},
                     {"num_local_experts", 0},
                     {"shared_intermediate_size", 8192}}));
  EXPECT_EQ(micro.config.num_experts, 0u);
  EXPECT_EQ(micro.config.intermediate_size, 8192u);
  EXPECT_EQ(micro.config.mamba_channels(), 4096u);
}

// 20b and 120b.
TEST_F(KnownRecentFamiliesTest, GptOss) {
  for (const int layers : {24, 36}) {
    json types = json::array();
    for (int i = 0; i < layers; ++i) {
      types.push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
    }
    const int experts = layers == 24 ? 32 : 128;
    const auto model = ReadModel(
        And(Published("GptOssForCausalLM", "gpt_oss", {2880, 2880, layers, 64, 8, 201088, 131072}),
            {{"attention_bias", true},
             {"experts_per_token", 4},
             {"head_dim", 64},
             {"hidden_act", "silu"},
             {"initial_context_length", 4096},
             {"layer_types", types},
             {"num_experts_per_tok", 4},
             {"num_local_experts", experts},
             {"output_router_logits", false},
             {"quantization_config",
              {{"modules_to_not_convert",
                {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
                 "lm_head"}},
               {"quant_method", "mxfp4"}}},
             {"rope_scaling",
              {{"beta_fast", 32.0},
               {"beta_slow", 1.0},
               {"factor", 32.0},
               {"original_max_position_embeddings", 4096},
               {"rope_type", "yarn"},
               {"truncate", false}}},
             {"rope_theta", 150000},
             {"router_aux_loss_coef", 0.9},
             {"sliding_window", 128},
             {"swiglu_limit", 7.0},
             {"tie_word_embeddings", false}}));
    EXPECT_TRUE(model.has_mxfp4);
    const ModelConfig& config = model.config;
    EXPECT_EQ(config.num_experts, static_cast<uint32_t>(experts));
    EXPECT_EQ(config.num_experts_per_tok, 4u);
    EXPECT_EQ(config.layer_kind(0).sliding_window, 128u);
    EXPECT_EQ(config.layer_kind(1).sliding_window, 0u);
    EXPECT_EQ(config.layer_kind(1).rope_scaling.type, RopeScaling::Type::kYarn);
    EXPECT_FALSE(config.layer_kind(1).rope_scaling.truncate);
  }
}

TEST_F(KnownRecentFamiliesTest, Olmo3) {
  json types = json::array();
  for (int i = 0; i < 32; ++i) {
    types.push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
  }
  const ModelConfig config = ReadModel(And(Published("Olmo3ForCausalLM", "olmo3",
                                                     {4096, 11008, 32, 32, 32, 100278, 65536}),
                                           {{"attention_bias", false},
                                            {"hidden_act", "silu"},
                                            {"layer_types", types},
                                            {"rope_scaling",
                                             {{"attention_factor", 1.2079441541679836},
                                              {"beta_fast", 32.0},
                                              {"beta_slow", 1.0},
                                              {"factor", 8.0},
                                              {"original_max_position_embeddings", 8192},
                                              {"rope_type", "yarn"}}},
                                            {"rope_theta", 500000},
                                            {"sliding_window", 4096},
                                            {"tie_word_embeddings", false}}))
                                 .config;
  EXPECT_EQ(config.layer_kind(0).sliding_window, 4096u);
  EXPECT_EQ(config.layer_kind(0).rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_EQ(config.layer_kind(3).sliding_window, 0u);
  EXPECT_EQ(config.layer_kind(3).rope_scaling.type, RopeScaling::Type::kYarn);
  EXPECT_TRUE(config.joint_qk_norm);
}

TEST_F(KnownRecentFamiliesTest, Exaone4) {
  const json rope = {{"factor", 16.0},
                     {"high_freq_factor", 4.0},
                     {"low_freq_factor", 1.0},
                     {"original_max_position_embeddings", 8192},
                     {"rope_type", "llama3"}};
  const ModelConfig small =
      ReadModel(
          And(Published("Exaone4ForCausalLM", "exaone4", {2048, 4096, 30, 32, 8, 102400, 65536}),
              {{"head_dim", 64},
               {"layer_types", std::vector<std::string>(30, "full_attention")},
               {"rope_scaling", rope},
               {"rope_theta", 1000000},
               {"sliding_window", nullptr},
               {"sliding_window_pattern", nullptr},
               {"tie_word_embeddings", true}}))
          .config;
  EXPECT_EQ(small.layer_kinds.size(), 1u);
  EXPECT_FALSE(small.layer_kinds[0].no_rope);
  json types = json::array();
  for (int i = 0; i < 64; ++i) {
    types.push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
  }
  const ModelConfig large = ReadModel(And(Published("Exaone4ForCausalLM", "exaone4",
                                                    {5120, 27392, 64, 40, 8, 102400, 131072}),
                                          {{"head_dim", 128},
                                           {"layer_types", types},
                                           {"rope_scaling", rope},
                                           {"rope_theta", 1000000},
                                           {"sliding_window", 4096},
                                           {"sliding_window_pattern", "LLLG"},
                                           {"tie_word_embeddings", false}}))
                                .config;
  EXPECT_FALSE(large.layer_kind(0).no_rope);
  EXPECT_TRUE(large.layer_kind(3).no_rope);
  EXPECT_EQ(large.norm_placement, NormPlacement::kAfter);
}

TEST_F(KnownRecentFamiliesTest, ErnieHunyuanAndSeedOss) {
  const HfModel ernie = ReadModel(And(
      Published("Ernie4_5ForCausalLM", "ernie4_5", {1024, 3072, 18, 16, 2, 103424, 131072}),
      {{"head_dim", 128}, {"rope_scaling", nullptr}, {"rope_theta", 500000}, {"use_bias", false}}));
  EXPECT_TRUE(ernie.has_interleaved_rope);
  EXPECT_TRUE(ernie.config.tie_word_embeddings);
  const ModelConfig hunyuan =
      ReadModel(And(Published("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense",
                              {2048, 6144, 32, 16, 4, 120818, 262144}),
                    {{"attention_bias", false},
                     {"attention_head_dim", 128},
                     {"head_dim", 128},
                     {"mlp_bias", false},
                     {"rope_scaling",
                      {{"alpha", 1000.0},
                       {"beta_fast", 32},
                       {"beta_slow", 1},
                       {"factor", 1.0},
                       {"mscale", 1.0},
                       {"mscale_all_dim", 0.0},
                       {"type", "dynamic"}}},
                     {"rope_theta", 10000.0},
                     {"tie_word_embeddings", true},
                     {"use_cla", false},
                     {"use_qk_norm", true}}))
          .config;
  EXPECT_TRUE(hunyuan.qk_norm_after_rope);
  EXPECT_NEAR(hunyuan.layer_kinds[0].rope_theta, 11158839.9, 2.0);
  EXPECT_EQ(hunyuan.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
  const ModelConfig seed = ReadModel(And(Published("SeedOssForCausalLM", "seed_oss",
                                                   {5120, 27648, 64, 80, 8, 155136, 524288}),
                                         {{"attention_bias", true},
                                          {"attention_out_bias", false},
                                          {"head_dim", 128},
                                          {"mlp_bias", false},
                                          {"residual_dropout", 0.1},
                                          {"rope_scaling", {{"rope_type", "default"}}},
                                          {"rope_theta", 10000000.0},
                                          {"tie_word_embeddings", false}}))
                               .config;
  EXPECT_TRUE(seed.qkv_bias);
  EXPECT_FALSE(seed.o_bias || seed.mlp_bias);
}

TEST_F(KnownRecentFamiliesTest, Glm4) {
  const HfModel model =
      ReadModel(And(Published("Glm4ForCausalLM", "glm4", {4096, 13696, 40, 32, 2, 151552, 32768}),
                    {{"attention_bias", false},
                     {"head_dim", 128},
                     {"hidden_act", "silu"},
                     {"partial_rotary_factor", 0.5},
                     {"rope_theta", 10000.0},
                     {"tie_word_embeddings", false}}));
  EXPECT_EQ(model.config.rotary_dim, 64u);
  EXPECT_TRUE(model.has_interleaved_rope && model.has_fused_projections);
  EXPECT_EQ(model.config.norm_placement, NormPlacement::kBeforeAndAfter);
}

TEST_F(KnownRecentFamiliesTest, WithoutGates) {
  const ModelConfig apertus = ReadModel(And(Published("ApertusForCausalLM", "apertus",
                                                      {4096, 21504, 32, 32, 8, 131072, 65536}),
                                            {{"attention_bias", false},
                                             {"hidden_act", "xielu"},
                                             {"mlp_bias", false},
                                             {"post_norm", false},
                                             {"qk_norm", true},
                                             {"rope_scaling",
                                              {{"factor", 8.0},
                                               {"high_freq_factor", 4.0},
                                               {"low_freq_factor", 1.0},
                                               {"original_max_position_embeddings", 8192},
                                               {"rope_type", "llama3"},
                                               {"type", "llama3"}}},
                                             {"rope_theta", 12000000},
                                             {"tie_word_embeddings", false}}))
                                  .config;
  EXPECT_EQ(apertus.hidden_act, HiddenAct::kXielu);
  EXPECT_EQ(apertus.xielu.size(), 32 * kXieluNumbers);
  EXPECT_TRUE(apertus.ungated_mlp && apertus.qk_norm);
  const ModelConfig arcee =
      ReadModel(And(Published("ArceeForCausalLM", "arcee", {2560, 18432, 36, 20, 4, 128004, 65536}),
                    {{"attention_bias", false},
                     {"head_dim", 128},
                     {"hidden_act", "relu2"},
                     {"mlp_bias", false},
                     {"rope_scaling",
                      {{"beta_fast", 32.0},
                       {"beta_slow", 1.0},
                       {"factor", 20.0},
                       {"mscale", 1.0},
                       {"original_max_position_embeddings", 4096},
                       {"rope_type", "yarn"},
                       {"type", "yarn"}}},
                     {"rope_theta", 10000.0},
                     {"tie_word_embeddings", false}}))
          .config;
  EXPECT_EQ(arcee.hidden_act, HiddenAct::kRelu2);
  EXPECT_EQ(arcee.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kYarn);
}

TEST_F(KnownRecentFamiliesTest, SmolVlm) {
  json text = And(Published("VLlama3ForCausalLM", "llama", {576, 1536, 30, 9, 3, 49280, 8192}),
                  {{"head_dim", 64},
                   {"is_llama_config", true},
                   {"pixel_shuffle_factor", 4},
                   {"rope_interleaved", false},
                   {"rope_scaling", nullptr},
                   {"rope_theta", 100000},
                   {"tie_word_embeddings", false}});
  const HfModel model = ReadModel({{"architectures", {"Idefics3ForConditionalGeneration"}},
                                   {"model_type", "idefics3"},
                                   {"image_token_id", 49190},
                                   {"scale_factor", 4},
                                   {"text_config", text},
                                   {"tie_word_embeddings", false},
                                   {"vision_config", {{"model_type", "idefics3"}}}});
  EXPECT_TRUE(model.has_vision);
  EXPECT_EQ(model.config.architecture, "LlamaForCausalLM");
  EXPECT_FALSE(model.config.tie_word_embeddings);
}

}  // namespace
}  // namespace cria
