#include "support/gemma4_gguf.h"

#include <format>
#include <string_view>
#include <utility>
#include <vector>

namespace cria::support {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> kModules[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
    {"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"},
    {"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"},
    {"post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"},
    {"per_layer_input_gate.weight", "inp_gate.weight"},
    {"per_layer_projection.weight", "proj.weight"},
    {"post_per_layer_input_norm.weight", "post_norm.weight"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"router.proj.weight", "ffn_gate_inp.weight"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"}};

}  // namespace

void AddGemma4(const json& config, GgufWriter& writer) {
  const auto size = [&](const char* field) { return config.at(field).get<uint32_t>(); };
  const uint32_t layers = size("num_hidden_layers");
  const uint32_t num_own = layers - size("num_kv_shared_layers");
  const uint32_t full = size("global_head_dim");
  std::vector<bool> slides;
  std::vector<int32_t> heads;
  std::vector<int32_t> widths;
  for (uint32_t i = 0; i < layers; ++i) {
    slides.push_back(config.at("layer_types").at(i) == "sliding_attention");
    const bool has_other = !slides.back() && config.value("attention_k_eq_v", false);
    heads.push_back(static_cast<int32_t>(
        size(has_other ? "num_global_key_value_heads" : "num_key_value_heads")));
    const bool is_wide = i >= num_own && config.value("use_double_wide_mlp", false);
    widths.push_back(static_cast<int32_t>((is_wide ? 2 : 1) * size("intermediate_size")));
  }
  writer.Add("gemma4.embedding_length", size("hidden_size"));
  writer.Add("gemma4.block_count", layers);
  writer.Add("gemma4.context_length", size("max_position_embeddings"));
  writer.Add("gemma4.feed_forward_length", widths);
  writer.Add("gemma4.attention.head_count", size("num_attention_heads"));
  writer.Add("gemma4.attention.head_count_kv", heads);
  writer.Add("gemma4.attention.layer_norm_rms_epsilon", config.value("rms_norm_eps", 1e-6f));
  writer.Add("gemma4.attention.key_length", full);
  writer.Add("gemma4.attention.value_length", full);
  writer.Add("gemma4.attention.key_length_swa", size("head_dim"));
  writer.Add("gemma4.attention.value_length_swa", size("head_dim"));
  writer.Add("gemma4.rope.dimension_count", full);
  writer.Add("gemma4.rope.dimension_count_swa", size("head_dim"));
  writer.Add("gemma4.attention.sliding_window", size("sliding_window"));
  writer.Add("gemma4.attention.sliding_window_pattern", slides);
  writer.Add("gemma4.attention.shared_kv_layers", size("num_kv_shared_layers"));
  writer.Add("gemma4.embedding_length_per_layer_input", size("hidden_size_per_layer_input"));
  writer.Add("gemma4.final_logit_softcapping", config.at("final_logit_softcapping").get<float>());
  writer.Add("gemma4.rope.freq_base", 1e6f);
  writer.Add("gemma4.rope.freq_base_swa", 1e4f);
  if (config.value("enable_moe_block", false)) {
    writer.Add("gemma4.expert_count", size("num_experts"));
    writer.Add("gemma4.expert_used_count", size("top_k_experts"));
    writer.Add("gemma4.expert_feed_forward_length", size("moe_intermediate_size"));
  }
  // A quarter of the pairs is rotated.
  std::vector<float> factors(full / 2, 1e30f);
  for (size_t i = 0; i < factors.size() / 4; ++i) factors[i] = 1.0f;
  writer.AddTensor("rope_freqs.weight", {factors.size()}, StorageType::kF32, factors);
}

std::string Gemma4GgmlName(const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (name == "model.embed_tokens_per_layer.weight") return "per_layer_token_embd.weight";
  if (name == "model.per_layer_model_projection.weight") return "per_layer_model_proj.weight";
  if (name == "model.per_layer_projection_norm.weight") return "per_layer_proj_norm.weight";
  if (!name.starts_with(kLayers)) return GgmlName(name);
  const size_t dot = name.find('.', kLayers.size());
  for (const auto& [hugging_face, ggml] : kModules) {
    if (name.substr(dot + 1) != hugging_face) continue;
    return std::format("blk.{}.{}", name.substr(kLayers.size(), dot - kLayers.size()), ggml);
  }
  return GgmlName(name);
}

}  // namespace cria::support
