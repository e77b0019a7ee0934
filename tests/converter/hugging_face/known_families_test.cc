// Reads the config.json of widely used checkpoints of the families that differ from Llama in their
// mathematics.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

class KnownFamiliesTest : public HfConfigFixture {};

json SizesOf(const char* architecture, const char* model_type, int hidden, int intermediate,
             int layers, int heads, int key_value_heads, int vocabulary, int positions) {
  return {{"architectures", {architecture}},   {"model_type", model_type},
          {"attention_bias", false},           {"attention_dropout", 0.0},
          {"initializer_range", 0.02},         {"use_cache", true},
          {"torch_dtype", "bfloat16"},         {"hidden_size", hidden},
          {"intermediate_size", intermediate}, {"num_hidden_layers", layers},
          {"num_attention_heads", heads},      {"num_key_value_heads", key_value_heads},
          {"vocab_size", vocabulary},          {"max_position_embeddings", positions}};
}

json Plus(json fields, const json& more) {
  fields.update(more);
  return fields;
}

size_t LayersWithWindow(const ModelConfig& config) {
  size_t count = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    count += config.layer_kind(i).sliding_window != 0 ? 1 : 0;
  }
  return count;
}

TEST_F(KnownFamiliesTest, Gemma2) {
  const json common = {{"attn_logit_softcapping", 50.0},
                       {"final_logit_softcapping", 30.0},
                       {"cache_implementation", "hybrid"},
                       {"head_dim", 256},
                       {"hidden_act", "gelu_pytorch_tanh"},
                       {"hidden_activation", "gelu_pytorch_tanh"},
                       {"query_pre_attn_scalar", 256},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 10000.0},
                       {"sliding_window", 4096}};
  const char* const name = "Gemma2ForCausalLM";
  for (const json& sizes : {SizesOf(name, "gemma2", 2304, 9216, 26, 8, 4, 256000, 8192),
                            SizesOf(name, "gemma2", 3584, 14336, 42, 16, 8, 256000, 8192)}) {
    const HfModel model = ReadModel(Plus(sizes, common));
    const ModelConfig& config = model.config;
    EXPECT_EQ(config.head_dim, 256u);
    EXPECT_EQ(config.hidden_act, HiddenAct::kGeluTanh);
    EXPECT_EQ(config.norm_placement, NormPlacement::kBeforeAndAfter);
    EXPECT_EQ(config.attn_logit_softcapping, 50.0f);
    EXPECT_EQ(config.final_logit_softcapping, 30.0f);
    EXPECT_TRUE(config.tie_word_embeddings);
    EXPECT_EQ(config.layer_kind(0).sliding_window, 4096u);
    EXPECT_EQ(config.layer_kind(1).sliding_window, 0u);
    EXPECT_EQ(LayersWithWindow(config), config.num_hidden_layers / 2);
    EXPECT_TRUE(model.folding.adds_one_to_norms);
    EXPECT_EQ(model.folding.score_factor, 1.0);
    EXPECT_DOUBLE_EQ(model.folding.embedding_multiplier, std::sqrt(config.hidden_size));
  }
}

TEST_F(KnownFamiliesTest, Gemma3) {
  const json common = {{"attn_logit_softcapping", nullptr},
                       {"final_logit_softcapping", nullptr},
                       {"head_dim", 256},
                       {"hidden_activation", "gelu_pytorch_tanh"},
                       {"query_pre_attn_scalar", 256},
                       {"rms_norm_eps", 1e-6},
                       {"rope_local_base_freq", 10000},
                       {"rope_scaling", nullptr},
                       {"rope_theta", 1000000},
                       {"sliding_window", 512}};
  const char* const name = "Gemma3ForCausalLM";
  json types = json::array();
  for (int i = 0; i < 18; ++i) {
    types.push_back(i % 6 == 5 ? "full_attention" : "sliding_attention");
  }
  const json newest = {{"layer_types", types},
                       {"_sliding_window_pattern", 6},
                       {"use_bidirectional_attention", false}};
  const std::vector<json> configs = {
      Plus(Plus(SizesOf(name, "gemma3_text", 640, 2048, 18, 4, 1, 262144, 32768), common), newest),
      Plus(Plus(SizesOf(name, "gemma3_text", 1152, 6912, 26, 4, 1, 262144, 32768), common),
           {{"sliding_window_pattern", 6}, {"cache_implementation", "hybrid"}})};
  for (const json& fields : configs) {
    const ModelConfig config = ReadModel(fields).config;
    EXPECT_TRUE(config.qk_norm);
    EXPECT_TRUE(config.tie_word_embeddings);
    EXPECT_EQ(LayersWithWindow(config), config.num_hidden_layers - config.num_hidden_layers / 6);
    EXPECT_EQ(config.layer_kind(0).rope_theta, 1e4f);
    EXPECT_EQ(config.layer_kind(0).sliding_window, 512u);
    EXPECT_EQ(config.layer_kind(5).rope_theta, 1e6f);
    EXPECT_EQ(config.layer_kind(5).sliding_window, 0u);
  }
}

// Most of its fields are absent.
TEST_F(KnownFamiliesTest, Gemma3WithVision) {
  const HfModel model = ReadModel(
      {{"architectures", {"Gemma3ForConditionalGeneration"}},
       {"model_type", "gemma3"},
       {"boi_token_index", 255999},
       {"eoi_token_index", 256000},
       {"eos_token_id", {1, 106}},
       {"image_token_index", 262144},
       {"mm_tokens_per_image", 256},
       {"text_config",
        {{"hidden_size", 2560},
         {"intermediate_size", 10240},
         {"model_type", "gemma3_text"},
         {"num_hidden_layers", 34},
         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
         {"sliding_window", 1024}}},
       {"vision_config", {{"hidden_size", 1152}, {"model_type", "siglip_vision_model"}}}});
  const ModelConfig& config = model.config;
  EXPECT_TRUE(model.has_vision);
  EXPECT_EQ(config.architecture, "Gemma3ForCausalLM");
  EXPECT_EQ(config.num_attention_heads, 8u);
  EXPECT_EQ(config.num_key_value_heads, 4u);
  EXPECT_EQ(config.head_dim, 256u);
  EXPECT_EQ(config.vocab_size, 262208u);
  EXPECT_EQ(config.max_position_embeddings, 131072u);
  EXPECT_EQ(LayersWithWindow(config), 29u);
  EXPECT_EQ(config.layer_kind(0).rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_EQ(config.layer_kind(5).rope_scaling.type, RopeScaling::Type::kLinear);
  EXPECT_EQ(config.layer_kind(5).rope_scaling.factor, 8.0f);
}

TEST_F(KnownFamiliesTest, Phi3Mini) {
  const char* const name = "Phi3ForCausalLM";
  const json common = {{"hidden_act", "silu"},        {"original_max_position_embeddings", 4096},
                       {"resid_pdrop", 0.0},          {"embd_pdrop", 0.0},
                       {"rms_norm_eps", 1e-5},        {"rope_theta", 10000.0},
                       {"tie_word_embeddings", false}};
  const HfModel short_text =
      ReadModel(Plus(Plus(SizesOf(name, "phi3", 3072, 8192, 32, 32, 32, 32064, 4096), common),
                     {{"rope_scaling", nullptr}, {"sliding_window", 2047}}));
  EXPECT_TRUE(short_text.has_fused_projections);
  EXPECT_EQ(short_text.config.head_dim, 96u);
  EXPECT_EQ(short_text.config.layer_kinds.size(), 1u);
  EXPECT_EQ(short_text.config.layer_kinds[0].sliding_window, 2047u);
  const std::vector<float> ones(48, 1.0f);
  const ModelConfig long_text =
      ReadModel(Plus(Plus(SizesOf(name, "phi3", 3072, 8192, 32, 32, 32, 32064, 131072), common),
                     {{"rope_scaling",
                       {{"long_factor", ones}, {"short_factor", ones}, {"type", "longrope"}}},
                      {"sliding_window", 262144}}))
          .config;
  EXPECT_EQ(long_text.layer_kinds[0].sliding_window, 0u);
  EXPECT_EQ(long_text.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLongrope);
  EXPECT_EQ(long_text.layer_kinds[0].rope_scaling.original_max_position_embeddings, 4096u);
  // sqrt(1 + ln 32 / ln 4096)
  EXPECT_FLOAT_EQ(long_text.layer_kinds[0].rope_scaling.attention_factor, 1.1902381f);
}

TEST_F(KnownFamiliesTest, Phi4Mini) {
  const std::vector<float> ones(48, 1.0f);
  const HfModel model = ReadModel(
      Plus(SizesOf("Phi3ForCausalLM", "phi3", 3072, 8192, 32, 24, 8, 200064, 131072),
           {{"full_attn_mod", 1},
            {"hidden_act", "silu"},
            {"interpolate_factor", 1},
            {"lm_head_bias", false},
            {"mlp_bias", false},
            {"original_max_position_embeddings", 4096},
            {"partial_rotary_factor", 0.75},
            {"rms_norm_eps", 1e-5},
            {"rope_scaling", {{"long_factor", ones}, {"short_factor", ones}, {"type", "longrope"}}},
            {"rope_theta", 10000.0},
            {"sliding_window", 262144},
            {"tie_word_embeddings", true}}));
  EXPECT_EQ(model.config.head_dim, 128u);
  EXPECT_EQ(model.config.rotary_dim, 96u);
  EXPECT_EQ(model.config.layer_kinds[0].rope_scaling.short_factor, ones);
  EXPECT_EQ(model.config.layer_kinds[0].rope_scaling.attention_factor, 1.0f);
  EXPECT_NEAR(model.folding.rotated_score_factor, 1.0 + 5.0 / 12.0, 1e-6);
}

TEST_F(KnownFamiliesTest, SmolLm3) {
  json no_rope_layers = json::array();
  for (int i = 0; i < 36; ++i) no_rope_layers.push_back(i % 4 == 3 ? 0 : 1);
  const ModelConfig config =
      ReadModel(
          Plus(SizesOf("SmolLM3ForCausalLM", "smollm3", 2048, 11008, 36, 16, 4, 128256, 65536),
               {{"hidden_act", "silu"},
                {"layer_types", std::vector<std::string>(36, "full_attention")},
                {"max_window_layers", 28},
                {"mlp_bias", false},
                {"no_rope_layer_interval", 4},
                {"no_rope_layers", no_rope_layers},
                {"pretraining_tp", 2},
                {"rms_norm_eps", 1e-6},
                {"rope_scaling", nullptr},
                {"rope_theta", 5000000.0},
                {"sliding_window", nullptr},
                {"use_sliding_window", false}}))
          .config;
  EXPECT_EQ(config.head_dim, 128u);
  EXPECT_TRUE(config.tie_word_embeddings);
  ASSERT_EQ(config.layer_kinds.size(), 2u);
  EXPECT_EQ(config.layer_kinds[0].rope_theta, 5e6f);
  EXPECT_FALSE(config.layer_kind(2).no_rope);
  EXPECT_TRUE(config.layer_kind(3).no_rope);
  EXPECT_EQ(std::ranges::count(config.kind_of_layer, 1), 9);
}

TEST_F(KnownFamiliesTest, Granite3) {
  const json common = {
      {"embedding_multiplier", 12.0}, {"hidden_act", "silu"}, {"mlp_bias", false},
      {"residual_multiplier", 0.22},  {"rms_norm_eps", 1e-5}, {"rope_scaling", nullptr},
      {"tie_word_embeddings", true}};
  const char* const name = "GraniteForCausalLM";
  const HfModel two = ReadModel(Plus(
      Plus(SizesOf(name, "granite", 2048, 8192, 40, 32, 8, 49155, 131072), common),
      {{"attention_multiplier", 0.015625}, {"logits_scaling", 8.0}, {"rope_theta", 5000000.0}}));
  EXPECT_EQ(two.config.head_dim, 64u);
  EXPECT_EQ(two.folding.score_factor, 0.125);
  EXPECT_EQ(two.folding.logits_divisor, 8.0);
  EXPECT_EQ(two.folding.embedding_multiplier, 12.0);
  EXPECT_FLOAT_EQ(static_cast<float>(two.folding.residual_multiplier), 0.22f);
  const HfModel eight = ReadModel(Plus(
      Plus(SizesOf(name, "granite", 4096, 12800, 40, 32, 8, 49155, 131072), common),
      {{"attention_multiplier", 0.0078125}, {"logits_scaling", 16.0}, {"rope_theta", 10000000.0}}));
  EXPECT_EQ(eight.config.head_dim, 128u);
  EXPECT_NEAR(eight.folding.score_factor, 1.0 / std::sqrt(128.0), 1e-12);
  EXPECT_EQ(eight.config.layer_kinds[0].rope_theta, 1e7f);
}

TEST_F(KnownFamiliesTest, Olmo2) {
  const json common = {{"hidden_act", "silu"},
                       {"rms_norm_eps", 1e-6},
                       {"rope_scaling", nullptr},
                       {"rope_theta", 500000},
                       {"tie_word_embeddings", false}};
  const char* const name = "Olmo2ForCausalLM";
  for (const json& sizes : {SizesOf(name, "olmo2", 2048, 8192, 16, 16, 16, 100352, 4096),
                            SizesOf(name, "olmo2", 4096, 11008, 32, 32, 32, 100352, 4096)}) {
    const ModelConfig config = ReadModel(Plus(sizes, common)).config;
    EXPECT_EQ(config.head_dim, 128u);
    EXPECT_EQ(config.norm_placement, NormPlacement::kAfter);
    EXPECT_TRUE(config.joint_qk_norm);
    EXPECT_EQ(config.layer_kinds[0].rope_theta, 5e5f);
  }
}

size_t LayersWithConvolution(const ModelConfig& config) {
  size_t count = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    count += config.layer_kind(i).short_conv ? 1 : 0;
  }
  return count;
}

// As the first files have it, and as transformers writes it later.
TEST_F(KnownFamiliesTest, Lfm2) {
  const json older = {{"architectures", {"Lfm2ForCausalLM"}},
                      {"block_auto_adjust_ff_dim", true},
                      {"block_dim", 2048},
                      {"block_ff_dim", 12288},
                      {"block_ffn_dim_multiplier", 1.0},
                      {"block_mlp_init_scale", 1.0},
                      {"block_multiple_of", 256},
                      {"block_norm_eps", 1e-5},
                      {"block_out_init_scale", 1.0},
                      {"block_use_swiglu", true},
                      {"block_use_xavier_init", true},
                      {"bos_token_id", 1},
                      {"conv_L_cache", 3},
                      {"conv_bias", false},
                      {"conv_dim", 2048},
                      {"conv_dim_out", 2048},
                      {"conv_use_xavier_init", true},
                      {"eos_token_id", 7},
                      {"full_attn_idxs", {2, 5, 8, 10, 12, 14}},
                      {"hidden_size", 2048},
                      {"initializer_range", 0.02},
                      {"max_position_embeddings", 128000},
                      {"model_type", "lfm2"},
                      {"norm_eps", 1e-5},
                      {"num_attention_heads", 32},
                      {"num_heads", 32},
                      {"num_hidden_layers", 16},
                      {"num_key_value_heads", 8},
                      {"pad_token_id", 0},
                      {"rope_theta", 1000000.0},
                      {"torch_dtype", "bfloat16"},
                      {"use_cache", true},
                      {"use_pos_enc", true},
                      {"vocab_size", 65536}};
  json newer = older;
  for (const char* name : {"full_attn_idxs", "block_ff_dim", "rope_theta"}) newer.erase(name);
  json types = json::array();
  for (int i = 0; i < 16; ++i) types.push_back("conv");
  for (const int i : {2, 5, 8, 10, 12, 14}) types[static_cast<size_t>(i)] = "full_attention";
  newer.update({{"intermediate_size", 12288},
                {"layer_types", types},
                {"rope_parameters", {{"rope_theta", 1000000.0}, {"rope_type", "default"}}},
                {"tie_word_embeddings", true}});
  for (const json& fields : {older, newer}) {
    const HfModel model = ReadModel(fields);
    const ModelConfig& config = model.config;
    EXPECT_TRUE(model.has_lfm2_names);
    EXPECT_EQ(config.intermediate_size, 8192u);
    EXPECT_EQ(config.head_dim, 64u);
    EXPECT_EQ(config.rms_norm_eps, 1e-5f);
    EXPECT_TRUE(config.qk_norm && config.tie_word_embeddings);
    EXPECT_EQ(config.conv_L_cache, 3u);
    EXPECT_FALSE(config.conv_bias);
    EXPECT_EQ(LayersWithConvolution(config), 10u);
    EXPECT_TRUE(config.layer_kind(0).short_conv);
    EXPECT_FALSE(config.layer_kind(2).short_conv);
    EXPECT_EQ(config.layer_kind(2).rope_theta, 1e6f);
  }
}

TEST_F(KnownFamiliesTest, Lfm2Mixture) {
  json types = json::array();
  for (int i = 0; i < 24; ++i) types.push_back("conv");
  for (const size_t i : {2, 6, 10, 14, 18, 21}) types[i] = "full_attention";
  const ModelConfig config = ReadModel({{"architectures", {"Lfm2MoeForCausalLM"}},
                                        {"bos_token_id", 1},
                                        {"conv_L_cache", 3},
                                        {"conv_bias", false},
                                        {"dtype", "bfloat16"},
                                        {"eos_token_id", 7},
                                        {"hidden_size", 2048},
                                        {"initializer_range", 0.02},
                                        {"intermediate_size", 7168},
                                        {"layer_types", types},
                                        {"max_position_embeddings", 128000},
                                        {"model_type", "lfm2_moe"},
                                        {"moe_intermediate_size", 1792},
                                        {"norm_eps", 1e-5},
                                        {"norm_topk_prob", true},
                                        {"num_attention_heads", 32},
                                        {"num_dense_layers", 2},
                                        {"num_experts", 32},
                                        {"num_experts_per_tok", 4},
                                        {"num_hidden_layers", 24},
                                        {"num_key_value_heads", 8},
                                        {"pad_token_id", 0},
                                        {"rope_theta", 1000000.0},
                                        {"routed_scaling_factor", 1.0},
                                        {"use_cache", true},
                                        {"use_expert_bias", true},
                                        {"vocab_size", 65536}})
                                 .config;
  EXPECT_EQ(config.intermediate_size, 7168u);
  EXPECT_EQ(config.moe_intermediate_size, 1792u);
  EXPECT_EQ(config.num_experts, 32u);
  EXPECT_EQ(config.num_experts_per_tok, 4u);
  EXPECT_EQ(config.scoring_func, ScoringFunc::kSigmoid);
  EXPECT_TRUE(config.use_expert_bias && config.norm_topk_prob && config.tie_word_embeddings);
  EXPECT_EQ(LayersWithConvolution(config), 18u);
  EXPECT_FALSE(config.is_mixture(1));
  EXPECT_TRUE(config.is_mixture(2));
  EXPECT_EQ(config.layer_kinds.size(), 3u);
}

void ExpectExperts(const ModelConfig& config, uint32_t experts, uint32_t per_token, uint32_t width,
                   bool is_normalized, uint32_t shared_width = 0) {
  EXPECT_EQ(config.num_experts, experts);
  EXPECT_EQ(config.num_experts_per_tok, per_token);
  EXPECT_EQ(config.moe_intermediate_size, width);
  EXPECT_EQ(config.norm_topk_prob, is_normalized);
  EXPECT_EQ(config.shared_expert_intermediate_size, shared_width);
  for (size_t i = 0; i < config.num_hidden_layers; ++i) EXPECT_TRUE(config.is_mixture(i)) << i;
}

TEST_F(KnownFamiliesTest, Mixtral) {
  const ModelConfig config =
      ReadModel(Plus(SizesOf("MixtralForCausalLM", "mixtral", 4096, 14336, 32, 32, 8, 32000, 32768),
                     {{"hidden_act", "silu"},
                      {"num_experts_per_tok", 2},
                      {"num_local_experts", 8},
                      {"output_router_logits", false},
                      {"rms_norm_eps", 1e-5},
                      {"rope_theta", 1000000.0},
                      {"router_aux_loss_coef", 0.02},
                      {"sliding_window", nullptr},
                      {"tie_word_embeddings", false}}))
          .config;
  ExpectExperts(config, 8, 2, 14336, true);
  EXPECT_EQ(LayersWithWindow(config), 0u);
}

TEST_F(KnownFamiliesTest, QwensMixtures) {
  const json common = {{"decoder_sparse_step", 1},
                       {"hidden_act", "silu"},
                       {"mlp_only_layers", json::array()},
                       {"output_router_logits", false},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 1000000.0},
                       {"router_aux_loss_coef", 0.001},
                       {"tie_word_embeddings", false},
                       {"use_sliding_window", false}};
  // Qwen1.5-MoE-A2.7B.
  json second =
      Plus(Plus(SizesOf("Qwen2MoeForCausalLM", "qwen2_moe", 2048, 5632, 24, 16, 16, 151936, 8192),
                common),
           {{"max_window_layers", 21},
            {"moe_intermediate_size", 1408},
            {"norm_topk_prob", false},
            {"num_experts", 60},
            {"num_experts_per_tok", 4},
            {"shared_expert_intermediate_size", 5632},
            {"sliding_window", 32768}});
  second.erase("attention_bias");
  const ModelConfig qwen2 = ReadModel(second).config;
  ExpectExperts(qwen2, 60, 4, 1408, false, 5632);
  EXPECT_TRUE(qwen2.shared_expert_gate && qwen2.qkv_bias);
  // Qwen3-30B-A3B.
  const ModelConfig qwen3 = ReadModel(Plus(Plus(SizesOf("Qwen3MoeForCausalLM", "qwen3_moe", 2048,
                                                        6144, 48, 32, 4, 151936, 40960),
                                                common),
                                           {{"head_dim", 128},
                                            {"max_window_layers", 48},
                                            {"moe_intermediate_size", 768},
                                            {"norm_topk_prob", true},
                                            {"num_experts", 128},
                                            {"num_experts_per_tok", 8},
                                            {"rope_scaling", nullptr},
                                            {"sliding_window", nullptr}}))
                                .config;
  ExpectExperts(qwen3, 128, 8, 768, true);
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_EQ(LayersWithWindow(qwen3), 0u);
}

TEST_F(KnownFamiliesTest, Olmoe) {
  const ModelConfig config =
      ReadModel(Plus(SizesOf("OlmoeForCausalLM", "olmoe", 2048, 1024, 16, 16, 16, 50304, 4096),
                     {{"clip_qkv", nullptr},
                      {"hidden_act", "silu"},
                      {"norm_topk_prob", false},
                      {"num_experts", 64},
                      {"num_experts_per_tok", 8},
                      {"output_router_logits", false},
                      {"rms_norm_eps", 1e-5},
                      {"rope_scaling", nullptr},
                      {"rope_theta", 10000.0},
                      {"router_aux_loss_coef", 0.01},
                      {"tie_word_embeddings", false}}))
          .config;
  ExpectExperts(config, 64, 8, 1024, false);
  EXPECT_TRUE(config.joint_qk_norm);
}

TEST_F(KnownFamiliesTest, GranitesMixture) {
  const HfModel model = ReadModel(
      Plus(SizesOf("GraniteMoeForCausalLM", "granitemoe", 1024, 512, 24, 16, 8, 49155, 4096),
           {{"attention_multiplier", 0.015625},
            {"embedding_multiplier", 12.0},
            {"hidden_act", "silu"},
            {"logits_scaling", 6.0},
            {"num_experts_per_tok", 8},
            {"num_local_experts", 32},
            {"output_router_logits", false},
            {"residual_multiplier", 0.22},
            {"rms_norm_eps", 1e-6},
            {"rope_scaling", nullptr},
            {"rope_theta", 10000},
            {"router_aux_loss_coef", 0.0},
            {"tie_word_embeddings", true}}));
  ExpectExperts(model.config, 32, 8, 512, true);
  EXPECT_EQ(model.folding.embedding_multiplier, 12.0);
  EXPECT_EQ(model.folding.score_factor, 0.125);
  EXPECT_EQ(model.folding.logits_divisor, 6.0);
}

}  // namespace
}  // namespace cria
