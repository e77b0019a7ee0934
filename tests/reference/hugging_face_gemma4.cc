#include "reference/hugging_face_gemma4.h"

#include <cmath>
#include <string>
#include <vector>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

// Whether each layer has a window; the last one never has.
std::vector<bool> Windows(const json& fields, size_t num_layers) {
  const json types = FieldOr(fields, "layer_types", json());
  std::vector<bool> has_window;
  for (size_t i = 0; i < num_layers; ++i) {
    has_window.push_back(types.is_null() ? (i + 1) % 6 != 0 : types.at(i) == "sliding_attention");
  }
  has_window.back() = false;
  return has_window;
}

void SetHeads(const json& fields, size_t index, bool has_window, ReferenceAttention& layer) {
  if (fields.contains("per_layer_config")) {
    for (const auto& [key, own] : fields.at("per_layer_config").items()) {
      if (std::stoul(key) != index) continue;
      layer.head_dim = own.value("head_dim", size_t{0});
      layer.num_key_value_heads = own.value("num_key_value_heads", size_t{0});
    }
    return;
  }
  if (has_window) return;
  layer.head_dim = FieldOr<size_t>(fields, "global_head_dim", 512);
  if (FieldOr(fields, "attention_k_eq_v", false)) {
    layer.num_key_value_heads = FieldOr<size_t>(fields, "num_global_key_value_heads", 0);
  }
}

void SetRope(const json& fields, bool has_window, ReferenceAttention& layer) {
  const json rope = FieldOr(
      fields, "rope_parameters",
      json{
          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
          {"full_attention",
           {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}}}});
  const json& own = rope.at(has_window ? "sliding_attention" : "full_attention");
  layer.rope_theta = own.at("rope_theta").get<double>();
  layer.rope_scaling = ReadRopeScaling(own);
}

}  // namespace

bool ReadGemma4(const json& fields, ReferenceConfig& config) {
  if (!config.architecture.starts_with("Gemma4For")) return false;
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 4);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 256);
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", true);
  config.embedding_multiplier = std::sqrt(static_cast<double>(config.hidden_size));
  config.activation = ReferenceActivation::kGeluTanh;
  config.norms = ReferenceNorms::kBoth;
  config.qk_norm = config.normalizes_values = config.has_layer_scalars = true;
  config.score_scale = 1.0;
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  config.final_logit_softcapping = FieldOr(fields, "final_logit_softcapping", 0.0);
  config.per_layer_size = FieldOr<size_t>(fields, "hidden_size_per_layer_input", 256);
  config.per_layer_rows = FieldOr<size_t>(fields, "vocab_size_per_layer_input", 262144);
  if (FieldOr(fields, "enable_moe_block", false)) {
    config.experts = {.names = ReferenceExpertNames::kGemma4,
                      .num_experts = fields.at("num_experts").get<size_t>(),
                      .num_experts_per_tok = fields.at("top_k_experts").get<size_t>(),
                      .intermediate_size = fields.at("moe_intermediate_size").get<size_t>(),
                      .norm_topk_prob = true,
                      .is_dense = std::vector<bool>(config.num_hidden_layers, false),
                      .are_beside_mlp = true};
  }
  const bool keys_are_values = FieldOr(fields, "attention_k_eq_v", false);
  const bool are_wide = FieldOr(fields, "use_double_wide_mlp", false);
  const std::vector<bool> has_window = Windows(fields, config.num_hidden_layers);
  const size_t num_own =
      config.num_hidden_layers - FieldOr<size_t>(fields, "num_kv_shared_layers", 0);
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    ReferenceAttention layer;
    layer.sliding_window = has_window[i] ? FieldOr<size_t>(fields, "sliding_window", 512) : 0;
    SetRope(fields, has_window[i], layer);
    SetHeads(fields, i, has_window[i], layer);
    layer.keys_are_values = keys_are_values && !has_window[i];
    for (size_t read = 0; i >= num_own && read < num_own; ++read) {
      if (has_window[read] == has_window[i]) layer.read_layer = static_cast<int>(read);
    }
    layer.has_wide_mlp = are_wide && i >= num_own;
    config.layers.push_back(layer);
  }
  return true;
}

}  // namespace cria::reference
