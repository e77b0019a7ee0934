#include "model/layer_sizes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/format.h"

namespace cria {
namespace {

// Kinds that compute the same must be equal.
Status ValidateSizes(const ModelConfig& config, const LayerKind& kind, const std::string& prefix) {
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}{}", prefix, what));
  };
  if (kind.global_head_dim % 2 != 0) return bad("global_head_dim must be even");
  if (kind.global_head_dim != 0 && config.rotary_dim != 0) {
    return bad("global_head_dim is given, but rotary_dim is given, too");
  }
  if (kind.global_head_dim == config.head_dim) return bad("global_head_dim is head_dim");
  if (kind.num_global_key_value_heads == config.num_key_value_heads) {
    return bad("num_global_key_value_heads is num_key_value_heads");
  }
  if (kind.num_global_key_value_heads != 0 &&
      config.num_attention_heads % kind.num_global_key_value_heads != 0) {
    return bad(
        Format("num_attention_heads ({}) is not a multiple of num_global_key_value_heads ({})",
               config.num_attention_heads, kind.num_global_key_value_heads));
  }
  if (!kind.use_double_wide_mlp) return {};
  if (config.ungated_mlp) return bad("use_double_wide_mlp is true, but ungated_mlp is true, too");
  if (config.num_experts == 0 || kind.dense_mlp || config.enable_moe_block) return {};
  return bad("use_double_wide_mlp is true, but its layers have no dense feed-forward");
}

// A layer without keys and values must attend like the one whose keys and values it reads.
Status ValidateSharedLayer(const ModelConfig& config, size_t layer) {
  const LayerKind& kind = config.layer_kind(layer);
  if (kind.stores_tokens()) return {};
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile,
                Format("kv_shared_layer of layer {} is {}, {}", layer, kind.kv_shared_layer, what));
  };
  if (config.attn_output_gate) return bad("but attn_output_gate is true");
  if (kind.kv_shared_layer > layer) return bad("which is not before it");
  const LayerKind& read = config.layer_kind(kind.kv_shared_layer - 1);
  if (!read.has_attention() || !read.stores_tokens()) return bad("which has no keys and values");
  if (read.sliding_window == kind.sliding_window && read.rope_theta == kind.rope_theta &&
      read.rope_scaling == kind.rope_scaling && read.no_rope == kind.no_rope &&
      read.global_head_dim == kind.global_head_dim &&
      read.num_global_key_value_heads == kind.num_global_key_value_heads) {
    return {};
  }
  return bad("which attends in another way");
}

// What a layer has besides its two halves, and experts beside a dense feed-forward.
Status ValidateMoreOfLayers(const ModelConfig& config) {
  const auto bad = [](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, std::string(what));
  };
  if (config.v_norm && !config.qk_norm) return bad("v_norm is true, but qk_norm is not");
  const bool has_more = config.hidden_size_per_layer_input != 0 || config.layer_scalar;
  if (config.rotated_residual && (has_more || config.enable_moe_block)) {
    return bad(
        "rotated_residual is true, but there are per-layer inputs, layer_scalar or "
        "enable_moe_block");
  }
  if (config.hidden_size_per_layer_input != 0 &&
      uint64_t{config.vocab_size} * config.num_hidden_layers > UINT32_MAX) {
    return bad("hidden_size_per_layer_input is given, but there are too many rows for all tokens");
  }
  if (!config.enable_moe_block) return {};
  if (config.num_experts == 0 || config.shared_expert_intermediate_size != 0) {
    return bad("enable_moe_block is true, but there are no experts, or there is a shared one");
  }
  if (config.norm_placement == NormPlacement::kBeforeAndAfter) return {};
  return bad("enable_moe_block is true, but norm_placement is not both");
}

}  // namespace

Status ValidateLayerSizes(const ModelConfig& config) {
  CRIA_RETURN_IF_ERROR(ValidateMoreOfLayers(config));
  const size_t num_kinds = config.layer_kinds.size();
  for (size_t kind = 0; kind < num_kinds; ++kind) {
    const std::string prefix = num_kinds == 1 ? "" : Format("layer_kinds[{}].", kind);
    CRIA_RETURN_IF_ERROR(ValidateSizes(config, config.layer_kinds[kind], prefix));
  }
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    CRIA_RETURN_IF_ERROR(ValidateSharedLayer(config, layer));
  }
  return {};
}

}  // namespace cria
