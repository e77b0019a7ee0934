#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/family_checkpoint.h"
#include "support/family_sizes.h"
#include "support/gemma4_family.h"
#include "support/gpt_oss_family.h"
#include "support/recent_families.h"

namespace cria::support {
namespace {

using nlohmann::json;

json Gemma() {
  return Merged(Sizes("GemmaForCausalLM", "gemma", 2),
                {{"head_dim", 16}, {"hidden_act", "gelu_pytorch_tanh"}, {"rms_norm_eps", 1e-6}});
}

// Scores and logits are of order 1 and 8, so that these caps change them.
json Gemma2() {
  return Merged(Sizes("Gemma2ForCausalLM", "gemma2", 3),
                {{"head_dim", 16},
                 {"hidden_act", "gelu_pytorch_tanh"},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"query_pre_attn_scalar", 16},
                 {"sliding_window", 12},
                 {"attn_logit_softcapping", 1.5},
                 {"final_logit_softcapping", 3.0}});
}

json Gemma3() {
  return Merged(Sizes("Gemma3ForCausalLM", "gemma3_text", 4),
                {{"head_dim", 16},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"query_pre_attn_scalar", 16},
                 {"sliding_window", 12},
                 {"sliding_window_pattern", 3},
                 {"rope_theta", 1000000.0},
                 {"rope_local_base_freq", 10000.0},
                 {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}});
}

json Gemma3NewForm() {
  json fields = Gemma3();
  for (const char* name :
       {"sliding_window_pattern", "rope_theta", "rope_local_base_freq", "rope_scaling"}) {
    fields.erase(name);
  }
  return Merged(
      fields,
      {{"layer_types",
        {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
       {"rope_parameters",
        {{"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000.0}}},
         {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}}}},
       {"query_pre_attn_scalar", 24},
       {"final_logit_softcapping", 3.0},
       {"attention_bias", true}});
}

json Gemma3Vision() {
  json text = Gemma3();
  text.erase("architectures");
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"model_type", "gemma3"},
          {"text_config", text},
          {"vision_config",
           {{"model_type", "siglip_vision_model"},
            {"hidden_size", 32},
            {"num_attention_heads", 4},
            {"num_hidden_layers", 1},
            {"intermediate_size", 32},
            {"image_size", 28},
            {"patch_size", 14}}},
          {"mm_tokens_per_image", 4}};
}

json Phi3() {
  return Merged(Sizes("Phi3ForCausalLM", "phi3", 2), {{"hidden_act", "silu"},
                                                      {"sliding_window", 12},
                                                      {"original_max_position_embeddings", 128},
                                                      {"rms_norm_eps", 1e-5},
                                                      {"rope_scaling", nullptr}});
}

json Longrope(size_t num_frequencies) {
  json short_factor = json::array();
  json long_factor = json::array();
  for (size_t i = 0; i < num_frequencies; ++i) {
    short_factor.push_back(1.0 + 0.05 * static_cast<double>(i));
    long_factor.push_back(1.0 + 0.75 * static_cast<double>(i));
  }
  return {{"type", "longrope"}, {"short_factor", short_factor}, {"long_factor", long_factor}};
}

json Phi3Longrope() {
  return Merged(Phi3(), {{"sliding_window", nullptr},
                         {"original_max_position_embeddings", 32},
                         {"rope_scaling", Longrope(8)}});
}

json Phi4Mini() {
  return Merged(Phi3Longrope(), {{"partial_rotary_factor", 0.75},
                                 {"tie_word_embeddings", true},
                                 {"rope_scaling", Longrope(6)}});
}

json SmolLm3() {
  return Merged(Sizes("SmolLM3ForCausalLM", "smollm3", 5), {{"rope_theta", 5000000.0},
                                                            {"rms_norm_eps", 1e-6},
                                                            {"no_rope_layer_interval", 4},
                                                            {"use_sliding_window", false}});
}

json SmolLm3Window() {
  return Merged(Sizes("SmolLM3ForCausalLM", "smollm3", 3), {{"no_rope_layers", {0, 1, 0}},
                                                            {"use_sliding_window", true},
                                                            {"sliding_window", 12},
                                                            {"attention_bias", true},
                                                            {"mlp_bias", true},
                                                            {"tie_word_embeddings", false}});
}

json Granite() {
  return Merged(Sizes("GraniteForCausalLM", "granite", 2), {{"embedding_multiplier", 6.0},
                                                            {"attention_multiplier", 0.125},
                                                            {"residual_multiplier", 0.22},
                                                            {"logits_scaling", 0.5},
                                                            {"rms_norm_eps", 1e-5},
                                                            {"rope_theta", 10000.0},
                                                            {"tie_word_embeddings", true}});
}

json Olmo2() {
  return Merged(Sizes("Olmo2ForCausalLM", "olmo2", 2),
                {{"rope_theta", 500000.0}, {"rms_norm_eps", 1e-6}});
}

json Mixture(const char* architecture, const char* model_type, int layers, const json& more) {
  return Merged(Sizes(architecture, model_type, layers), more);
}

json Mixtral() {
  return Mixture("MixtralForCausalLM", "mixtral", 2,
                 {{"intermediate_size", 96},
                  {"num_local_experts", 4},
                  {"num_experts_per_tok", 2},
                  {"rms_norm_eps", 1e-5},
                  {"rope_theta", 1000000.0}});
}

json Qwen2Moe() {
  return Mixture("Qwen2MoeForCausalLM", "qwen2_moe", 2,
                 {{"num_experts", 6},
                  {"num_experts_per_tok", 3},
                  {"moe_intermediate_size", 64},
                  {"shared_expert_intermediate_size", 96},
                  {"norm_topk_prob", false}});
}

json Qwen3Moe() {
  return Mixture("Qwen3MoeForCausalLM", "qwen3_moe", 2,
                 {{"head_dim", 32},
                  {"num_experts", 8},
                  {"num_experts_per_tok", 2},
                  {"moe_intermediate_size", 64},
                  {"norm_topk_prob", true}});
}

json Olmoe() {
  return Mixture("OlmoeForCausalLM", "olmoe", 2,
                 {{"intermediate_size", 64},
                  {"num_experts", 8},
                  {"num_experts_per_tok", 3},
                  {"rms_norm_eps", 1e-5}});
}

json GraniteMoe() {
  return Mixture("GraniteMoeForCausalLM", "granitemoe", 2,
                 {{"intermediate_size", 64},
                  {"num_local_experts", 6},
                  {"num_experts_per_tok", 3},
                  {"embedding_multiplier", 6.0},
                  {"attention_multiplier", 0.125},
                  {"residual_multiplier", 0.22},
                  {"logits_scaling", 2.0},
                  {"rms_norm_eps", 1e-6},
                  {"tie_word_embeddings", true}});
}

json GraniteMoeShared() {
  json fields = GraniteMoe();
  fields["architectures"] = {"GraniteMoeSharedForCausalLM"};
  fields["model_type"] = "granitemoeshared";
  return Merged(fields, {{"shared_intermediate_size", 96}, {"tie_word_embeddings", false}});
}

json Lfm2() {
  return Merged(Sizes("Lfm2ForCausalLM", "lfm2", 4),
                {{"layer_types", {"conv", "conv", "full_attention", "conv"}},
                 {"conv_L_cache", 3},
                 {"conv_bias", false},
                 {"block_auto_adjust_ff_dim", false},
                 {"norm_eps", 1e-5},
                 {"rope_theta", 1000000.0}});
}

json Lfm2Moe() {
  return Mixture("Lfm2MoeForCausalLM", "lfm2_moe", 4,
                 {{"layer_types", {"conv", "full_attention", "conv", "full_attention"}},
                  {"num_dense_layers", 1},
                  {"num_experts", 8},
                  {"num_experts_per_tok", 3},
                  {"moe_intermediate_size", 64},
                  {"norm_topk_prob", true},
                  {"use_expert_bias", true},
                  {"routed_scaling_factor", 1.0},
                  {"conv_L_cache", 3},
                  {"conv_bias", false},
                  {"norm_eps", 1e-5},
                  {"rope_theta", 1000000.0}});
}

// With the base of the class, the pairs that are not turned would hardly turn in a short text.
json Lfm3() {
  return Merged(
      Sizes("Lfm3ForCausalLM", "lfm3", 6),
      {{"head_dim", 16},
       {"sliding_window", 12},
       {"norm_eps", 1e-5},
       {"rope_parameters",
        {{"full_attention",
          {{"rope_type", "proportional"}, {"rope_theta", 100.0}, {"partial_rotary_factor", 0.5}}},
         {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}}}});
}

}  // namespace

namespace {

std::vector<FamilyCheckpoint> ShortConvCheckpoints() {
  const json attention = {{"num_key_value_heads", 4},
                          {"full_attn_idxs", {0, 3}},
                          {"conv_L_cache", 4},
                          {"conv_bias", true},
                          {"block_ff_dim", 300},
                          {"block_ffn_dim_multiplier", 1.3},
                          {"block_multiple_of", 32},
                          {"tie_word_embeddings", false},
                          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e4}}}};
  json lfm2 = Lfm2();
  for (const char* name : {"layer_types", "rope_theta", "block_auto_adjust_ff_dim"}) {
    lfm2.erase(name);
  }
  const json scaled = {
      {"use_expert_bias", false}, {"norm_topk_prob", false}, {"routed_scaling_factor", 2.5},
      {"num_dense_layers", 0},    {"conv_L_cache", 7},       {"conv_bias", true},
      {"tie_embedding", false}};
  const json plain = {
      {"use_sandwich_norm", false},
      {"use_attention_gate", false},
      {"attention_bias", true},
      {"conv_bias", true},
      {"conv_L_cache", 3},
      {"tie_word_embeddings", false},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 5e5}}},
        {"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}}}}}};
  return {{"Lfm2", Lfm2().dump(), "lfm2"},
          {"Lfm2Biases", Merged(lfm2, attention).dump(), ""},
          {"Lfm2Moe", Lfm2Moe().dump(), "lfm2moe"},
          {"Lfm2MoeScaled", Merged(Lfm2Moe(), scaled).dump(), ""},
          {"Lfm3", Lfm3().dump(), ""},
          {"Lfm3Plain", Merged(Lfm3(), plain).dump(), ""}};
}

// A quarter of a head would be two pairs.
json Qwen35() {
  return Merged(Sizes("Qwen3_5ForCausalLM", "qwen3_5_text", 4), {{"head_dim", 16},
                                                                 {"linear_conv_kernel_dim", 4},
                                                                 {"linear_key_head_dim", 16},
                                                                 {"linear_value_head_dim", 16},
                                                                 {"linear_num_key_heads", 2},
                                                                 {"linear_num_value_heads", 4},
                                                                 {"full_attention_interval", 4},
                                                                 {"rope_parameters",
                                                                  {{"rope_type", "default"},
                                                                   {"rope_theta", 10000.0},
                                                                   {"partial_rotary_factor", 0.5},
                                                                   {"mrope_section", {2, 1, 1}}}},
                                                                 {"tie_word_embeddings", false}});
}

// Value heads that no vector fills, and as many as there are key heads.
json Qwen35Other() {
  json fields = Qwen35();
  fields.erase("full_attention_interval");
  return Merged(fields,
                {{"layer_types",
                  {"full_attention", "linear_attention", "full_attention", "linear_attention"}},
                 {"linear_conv_kernel_dim", 2},
                 {"linear_key_head_dim", 20},
                 {"linear_value_head_dim", 24},
                 {"linear_num_key_heads", 3},
                 {"linear_num_value_heads", 3},
                 {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}},
                 {"num_key_value_heads", 4},
                 {"tie_word_embeddings", true}});
}

json Qwen35Vision() {
  json text = Qwen35();
  text.erase("architectures");
  return {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
          {"model_type", "qwen3_5"},
          {"vision_config", {{"hidden_size", 32}}},
          {"tie_word_embeddings", false},
          {"text_config", text}};
}

json WithExperts(json fields, const char* architecture, const char* model_type) {
  fields["architectures"] = {architecture};
  fields["model_type"] = model_type;
  return Merged(fields, {{"num_experts", 8},
                         {"num_experts_per_tok", 3},
                         {"moe_intermediate_size", 64},
                         {"shared_expert_intermediate_size", 96}});
}

// Three value heads use each key head.
json Qwen3Next() {
  json fields = WithExperts(Qwen35(), "Qwen3NextForCausalLM", "qwen3_next");
  fields["rope_parameters"].erase("mrope_section");
  return Merged(fields, {{"linear_num_value_heads", 6},
                         {"linear_conv_kernel_dim", 3},
                         {"norm_topk_prob", true},
                         {"decoder_sparse_step", 1}});
}

std::vector<FamilyCheckpoint> LinearAttentionCheckpoints() {
  return {{"Qwen35", Qwen35().dump(), "qwen35"},
          {"Qwen35Mtp", Merged(Qwen35(), {{"mtp_num_hidden_layers", 1}}).dump(), "qwen35"},
          {"Qwen35Other", Qwen35Other().dump(), ""},
          {"Qwen35Vision", Qwen35Vision().dump(), ""},
          {"Qwen35Moe", WithExperts(Qwen35(), "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text").dump(),
           "qwen35moe"},
          {"Qwen3Next", Qwen3Next().dump(), "qwen3next"},
          {"Qwen3NextMtp", Qwen3Next().dump(), ""},
          {"Qwen3NextDense",
           Merged(Qwen3Next(), {{"norm_topk_prob", false}, {"mlp_only_layers", {1}}}).dump(), ""}};
}

}  // namespace

std::vector<FamilyCheckpoint> FamilyCheckpoints() {
  const auto all_attention = [](size_t layers) -> json {
    return {{"layer_types", std::vector<std::string>(layers, "full_attention")}};
  };
  const json gemma_biases = {
      {"hidden_act", "gelu"}, {"attention_bias", true}, {"tie_word_embeddings", false}};
  const json no_caps = {{"attn_logit_softcapping", nullptr},
                        {"final_logit_softcapping", nullptr},
                        {"query_pre_attn_scalar", 24},
                        {"hidden_activation", "gelu"},
                        {"hidden_act", "gelu"},
                        {"layer_types", {"full_attention", "sliding_attention", "full_attention"}}};
  const json granite_biases = {{"attention_bias", true},
                               {"mlp_bias", true},
                               {"attention_multiplier", 0.35},
                               {"logits_scaling", 2.0},
                               {"tie_word_embeddings", false}};
  const json olmo2_biases = {{"attention_bias", true},
                             {"num_key_value_heads", 4},
                             {"tie_word_embeddings", true},
                             {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  const json dense_layers = {{"num_hidden_layers", 4},
                             {"decoder_sparse_step", 2},
                             {"mlp_only_layers", {1}},
                             {"norm_topk_prob", true},
                             {"num_key_value_heads", 4},
                             {"rope_theta", 500000.0},
                             {"shared_expert_intermediate_size", 160}};
  const json qwen3_biases = {{"num_hidden_layers", 3},
                             {"mlp_only_layers", {0}},
                             {"norm_topk_prob", false},
                             {"attention_bias", true},
                             {"tie_word_embeddings", true}};
  const json olmoe_normed = {{"norm_topk_prob", true},
                             {"num_key_value_heads", 4},
                             {"attention_bias", true},
                             {"num_experts_per_tok", 8}};
  std::vector<FamilyCheckpoint> families = ShortConvCheckpoints();
  const std::vector<FamilyCheckpoint> others = {
      {"Gemma", Gemma().dump(), "gemma"},
      {"GemmaBiases", Merged(Gemma(), gemma_biases).dump(), "gemma"},
      {"Gemma2", Gemma2().dump(), "gemma2"},
      {"Gemma2NoCaps", Merged(Gemma2(), no_caps).dump(), ""},
      {"Gemma3", Gemma3().dump(), "gemma3"},
      {"Gemma3NewForm", Gemma3NewForm().dump(), ""},
      {"Gemma3Vision", Gemma3Vision().dump(), ""},
      {"Phi3", Phi3().dump(), "phi3"},
      {"Phi3Longrope", Phi3Longrope().dump(), "phi3"},
      {"Phi4Mini", Phi4Mini().dump(), "phi3"},
      {"SmolLm3", SmolLm3().dump(), "smollm3"},
      {"SmolLm3Window", SmolLm3Window().dump(), ""},
      {"Granite", Granite().dump(), "granite"},
      {"GraniteBiases", Merged(Granite(), granite_biases).dump(), "granite"},
      {"Olmo2", Olmo2().dump(), "olmo2"},
      {"Olmo2Biases", Merged(Olmo2(), olmo2_biases).dump(), "olmo2"},
      {"Mixtral", Mixtral().dump(), "llama"},
      {"MixtralWindow",
       Merged(Mixtral(), {{"sliding_window", 12}, {"num_experts_per_tok", 1}}).dump(), ""},
      {"Qwen2Moe", Qwen2Moe().dump(), "qwen2moe"},
      {"Qwen2MoeDenseLayers",
       Merged(Qwen2Moe(), Merged(dense_layers, {{"qkv_bias", false}})).dump(), ""},
      {"Qwen3Moe", Qwen3Moe().dump(), "qwen3moe"},
      {"Qwen3MoeBiases", Merged(Qwen3Moe(), qwen3_biases).dump(), ""},
      {"Olmoe", Olmoe().dump(), "olmoe"},
      {"OlmoeAllExperts", Merged(Olmoe(), olmoe_normed).dump(), ""},
      {"GraniteMoe", GraniteMoe().dump(), "granitemoe"},
      {"GraniteMoeShared", GraniteMoeShared().dump(), "granitemoe"},
      {"Lfm2AllAttention", Merged(Lfm2(), all_attention(4)).dump(), "lfm2"},
      {"Lfm2MoeAllAttention", Merged(Lfm2Moe(), all_attention(4)).dump(), "lfm2moe"},
      {"Lfm2MoeAttentionScaled",
       Merged(Lfm2Moe(), Merged(all_attention(4), {{"use_expert_bias", false},
                                                   {"norm_topk_prob", false},
                                                   {"routed_scaling_factor", 2.5}}))
           .dump(),
       "lfm2moe"},
      {"Lfm3AllAttention",
       Merged(Lfm3(),
              {{"layer_types", {"sliding_attention", "full_attention", "sliding_attention"}},
               {"num_hidden_layers", 3}})
           .dump(),
       ""}};
  families.insert(families.end(), others.begin(), others.end());
  const std::vector<FamilyCheckpoint> linear = LinearAttentionCheckpoints();
  families.insert(families.end(), linear.begin(), linear.end());
  const std::vector<FamilyCheckpoint> recent = RecentFamilies();
  families.insert(families.end(), recent.begin(), recent.end());
  const std::vector<FamilyCheckpoint> gpt_oss = GptOssCheckpoints();
  families.insert(families.end(), gpt_oss.begin(), gpt_oss.end());
  const std::vector<FamilyCheckpoint> gemma4 = Gemma4Checkpoints();
  families.insert(families.end(), gemma4.begin(), gemma4.end());
  return families;
}

FamilyCheckpoint WideMixture() {
  json fields = Qwen2Moe();
  fields.update({{"hidden_size", 256},
                 {"num_hidden_layers", 3},
                 {"mlp_only_layers", {1}},
                 {"intermediate_size", 512},
                 {"num_experts", 8},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 256},
                 {"shared_expert_intermediate_size", 256},
                 {"vocab_size", 1024},
                 {"max_position_embeddings", 512}});
  return {"Qwen2MoeWide", fields.dump(), "qwen2moe"};
}

FamilyCheckpoint FamilyOf(const std::string& config_json) {
  const auto architecture = json::parse(config_json).at("architectures").at(0).get<std::string>();
  // The names of variants only add to that of their family.
  for (FamilyCheckpoint& known : FamilyCheckpoints()) {
    if (json::parse(known.config_json).at("architectures").at(0) != architecture) continue;
    known.config_json = config_json;
    return known;
  }
  throw std::runtime_error("no family has the architecture " + architecture);
}

FamilyCheckpoint FamilyNamed(std::string_view name) {
  for (FamilyCheckpoint& checkpoint : FamilyCheckpoints()) {
    if (checkpoint.name == name) return checkpoint;
  }
  throw std::runtime_error("no family is named " + std::string(name));
}

}  // namespace cria::support
