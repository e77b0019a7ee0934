#include "reference/hugging_face_linear.h"

#include <algorithm>
#include <string>
#include <vector>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

void ReadLinear(const json& fields, bool is_fused, ReferenceConfig& config) {
  config.linear = {.conv_kernel_dim = FieldOr<size_t>(fields, "linear_conv_kernel_dim", 4),
                   .key_head_dim = FieldOr<size_t>(fields, "linear_key_head_dim", 128),
                   .value_head_dim = FieldOr<size_t>(fields, "linear_value_head_dim", 128),
                   .num_key_heads = FieldOr<size_t>(fields, "linear_num_key_heads", 16),
                   .num_value_heads = FieldOr<size_t>(fields, "linear_num_value_heads", 32),
                   .is_fused = is_fused};
}

void ReadRope(const json& fields, ReferenceConfig& config) {
  config.rope_theta = FieldOr(fields, "rope_theta", 1e4);
  double turned = FieldOr(fields, "partial_rotary_factor", 0.25);
  const json rope = FieldOr(fields, "rope_parameters", json());
  if (!rope.is_null()) {
    config.rope_theta = FieldOr(rope, "rope_theta", config.rope_theta);
    turned = FieldOr(rope, "partial_rotary_factor", turned);
    config.rope_scaling = ReadRopeScaling(rope);
  }
  config.rotary_dim = static_cast<size_t>(turned * static_cast<double>(config.head_dim));
}

void ReadMixtureOf(const json& fields, bool is_next, ReferenceConfig& config) {
  config.experts = {
      .num_experts = FieldOr<size_t>(fields, "num_experts", is_next ? 512 : 256),
      .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", is_next ? 10 : 8),
      .intermediate_size = FieldOr<size_t>(fields, "moe_intermediate_size", 512),
      .norm_topk_prob = !is_next || FieldOr(fields, "norm_topk_prob", true),
      .shared_intermediate_size = FieldOr<size_t>(fields, "shared_expert_intermediate_size", 512)};
  const auto step = is_next ? FieldOr<size_t>(fields, "decoder_sparse_step", 1) : 1;
  const auto dense =
      is_next ? FieldOr(fields, "mlp_only_layers", std::vector<size_t>()) : std::vector<size_t>();
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const bool is_listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    config.experts.is_dense.push_back(is_listed || (i + 1) % step != 0);
  }
}

}  // namespace

bool ReadLinearFamily(const json& fields, ReferenceConfig& config) {
  const bool is_next = config.architecture == "Qwen3NextForCausalLM";
  if (!is_next && !config.architecture.starts_with("Qwen3_5")) return false;
  const bool is_mixture = is_next || config.architecture.starts_with("Qwen3_5Moe");
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", is_mixture ? 2 : 4);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 256);
  config.qk_norm = true;
  config.attn_output_gate = true;
  config.norm_weight_offset = 1.0;
  ReadLinear(fields, is_next, config);
  ReadRope(fields, config);
  if (is_mixture) ReadMixtureOf(fields, is_next, config);
  const json types = FieldOr(fields, "layer_types", json());
  const auto interval = FieldOr<size_t>(fields, "full_attention_interval", 4);
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    ReferenceAttention layer = {config.rope_theta, config.rope_scaling, 0};
    layer.linear_attention =
        types.is_null() ? (i + 1) % interval != 0 : types.at(i) == "linear_attention";
    config.layers.push_back(layer);
  }
  return true;
}

}  // namespace cria::reference
