#include "model/recurrent_layers.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/format.h"
#include "model/check_number.h"

namespace cria {
namespace {

// A field that is positive in models that have such layers, and 0 in all others.
struct SizeField {
  std::string_view name;
  uint32_t value;
};

bool IsAnyGiven(std::span<const SizeField> sizes) {
  return std::ranges::any_of(sizes, [](const SizeField& size) { return size.value != 0; });
}

Status CheckAreGiven(std::span<const SizeField> sizes) {
  for (const SizeField& size : sizes) {
    CRIA_RETURN_IF_ERROR(CheckRange("", size.name, size.value, 1, UINT32_MAX));
  }
  return {};
}

Status ValidateShortConv(const ModelConfig& config) {
  if (!config.has_short_conv()) {
    if (config.conv_L_cache == 0 && !config.conv_bias) return {};
    return Fail(ErrorCode::kInvalidFile,
                "short_conv is false for every layer, but there are other fields of convolutions");
  }
  return CheckRange("", "conv_L_cache", config.conv_L_cache, 1, kMaxConvTaps);
}

// Bounds all channels of a row, so that no size of states overflows.
Status CheckRecurrentChannels(std::string_view what, uint64_t channels) {
  constexpr uint64_t kMaxChannels = 1u << 18;
  if (channels <= kMaxChannels) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{} has rows of {} channels, but at most {} are possible", what, channels,
                     kMaxChannels));
}

Status CheckIsMultiple(const SizeField& of, const SizeField& divisor) {
  if (of.value % divisor.value == 0) return {};
  return Fail(ErrorCode::kInvalidFile, Format("{} ({}) is not a multiple of {} ({})", of.name,
                                              of.value, divisor.name, divisor.value));
}

Status ValidateLinearAttention(const ModelConfig& config) {
  const SizeField key_heads = {"linear_num_key_heads", config.linear_num_key_heads};
  const SizeField value_heads = {"linear_num_value_heads", config.linear_num_value_heads};
  const SizeField sizes[] = {{"linear_conv_kernel_dim", config.linear_conv_kernel_dim},
                             {"linear_key_head_dim", config.linear_key_head_dim},
                             {"linear_value_head_dim", config.linear_value_head_dim},
                             key_heads,
                             value_heads};
  if (!config.has_linear_attention()) {
    if (!IsAnyGiven(sizes) && !config.linear_tiled_value_heads) return {};
    return Fail(ErrorCode::kInvalidFile,
                "linear_attention is false for every layer, but there are other fields of it");
  }
  CRIA_RETURN_IF_ERROR(CheckAreGiven(sizes));
  CRIA_RETURN_IF_ERROR(CheckRecurrentChannels(
      "linear attention",
      2 * uint64_t{config.linear_num_key_heads} * config.linear_key_head_dim +
          2 * uint64_t{config.linear_num_value_heads} * config.linear_value_head_dim));
  return CheckIsMultiple(value_heads, key_heads);
}

Status ValidateMamba(const ModelConfig& config) {
  const SizeField heads = {"mamba_n_heads", config.mamba_n_heads};
  const SizeField groups = {"mamba_n_groups", config.mamba_n_groups};
  const SizeField sizes[] = {{"mamba_d_conv", config.mamba_d_conv},
                             {"mamba_d_state", config.mamba_d_state},
                             {"mamba_d_head", config.mamba_d_head},
                             heads,
                             groups};
  if (!config.has_mamba()) {
    if (!IsAnyGiven(sizes) && !config.mamba_conv_bias && !config.mamba_proj_bias) return {};
    return Fail(ErrorCode::kInvalidFile,
                "mamba is false for every layer, but there are other fields of it");
  }
  CRIA_RETURN_IF_ERROR(CheckAreGiven(sizes));
  CRIA_RETURN_IF_ERROR(CheckRecurrentChannels("Mamba", config.mamba_in_channels()));
  return CheckIsMultiple(heads, groups);
}

// The hidden state that the layer behind the others reads is kept with the states.
Status ValidateMtp(const ModelConfig& config) {
  if (config.mtp_num_hidden_layers == 0) return {};
  const LayerKind& kind = config.attention_kind();
  if (config.has_recurrent_layers() && kind.sliding_window == 0 && kind.stores_tokens() &&
      !config.qkv_bias && config.norm_placement == NormPlacement::kBefore &&
      config.hidden_size_per_layer_input == 0 && !config.layer_scalar && !config.ungated_mlp &&
      config.final_logit_softcapping == 0.0f) {
    return {};
  }
  return Fail(ErrorCode::kUnsupported,
              "mtp_num_hidden_layers is given, which this version only knows of models with "
              "recurrent layers, norms before blocks, attention without windows and biases, and "
              "logits without a cap");
}

// The KV cache, whose pages count a sequence's tokens, needs a layer.
Status ValidateSomeAttention(const ModelConfig& config) {
  if (std::ranges::any_of(config.layer_kinds, &LayerKind::has_attention)) return {};
  return Fail(ErrorCode::kUnsupported,
              Format("{} is true for every layer, but this version needs a layer with attention",
                     config.has_mamba()              ? "mamba"
                     : config.has_linear_attention() ? "linear_attention"
                                                     : "short_conv"));
}

}  // namespace

Status ValidateRecurrentLayers(const ModelConfig& config) {
  CRIA_RETURN_IF_ERROR(ValidateShortConv(config));
  CRIA_RETURN_IF_ERROR(ValidateLinearAttention(config));
  CRIA_RETURN_IF_ERROR(ValidateMamba(config));
  CRIA_RETURN_IF_ERROR(ValidateMtp(config));
  return ValidateSomeAttention(config);
}

Status ValidateRecurrentKind(const LayerKind& kind, const std::string& prefix) {
  if (kind.has_attention()) return {};
  const std::string_view mixer = kind.short_conv         ? "short_conv"
                                 : kind.linear_attention ? "linear_attention"
                                                         : "mamba";
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}{}, but {} is true: such layers have no attention", prefix, what, mixer));
  };
  if (kind.short_conv && kind.linear_attention) return bad("linear_attention is true");
  if (kind.mamba && mixer != "mamba") return bad("mamba is true");
  if (kind.sliding_window != 0) return bad(Format("sliding_window is {}", kind.sliding_window));
  if (!kind.no_rope) return bad("no_rope is false");
  if (kind.rope_scaling != RopeScaling{}) return bad("rope_scaling is given");
  if (kind.global_head_dim != 0) return bad("global_head_dim is given");
  if (kind.num_global_key_value_heads != 0) return bad("num_global_key_value_heads is given");
  if (kind.kv_shared_layer != 0) return bad("kv_shared_layer is given");
  return {};
}

}  // namespace cria
