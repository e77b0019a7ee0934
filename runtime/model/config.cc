#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/format.h"
#include "model/check_number.h"
#include "model/config_fields.h"
#include "model/layer_sizes.h"
#include "model/recurrent_layers.h"

namespace cria {
namespace {

// Checks the bounds that a field has in its table in config_fields.h.
template <typename Owner, typename Value>
Status CheckField(const ConfigField<Owner, Value>& field, const Owner& owner,
                  std::string_view prefix = "") {
  const Value& value = owner.*field.member;
  if constexpr (std::same_as<Value, uint32_t>) {
    return CheckRange(prefix, field.name, value, field.min, field.max);
  }
  if constexpr (std::same_as<Value, float>) {
    return field.must_be_positive ? CheckPositive(prefix, field.name, value)
                                  : CheckNotNegative(field.name, value);
  }
  if constexpr (std::is_enum_v<Value>) {
    if (static_cast<uint32_t>(value) <= field.max) return {};
    return Fail(ErrorCode::kUnsupported,
                Format("{} is {}, which this version does not know; use a newer cria", field.name,
                       static_cast<uint32_t>(value)));
  }
  return {};
}

// ValidateLayerKinds checks the fields of every kind, and so of the first.
template <typename Value>
Status CheckField(const ConfigField<LayerKind, Value>& /*field*/, const ModelConfig& /*config*/) {
  return {};
}

// Checks one kind of layers. `prefix` goes before the names of its fields in errors.
class LayerKindChecker {
 public:
  LayerKindChecker(const ModelConfig& config, const LayerKind& kind, const std::string& prefix)
      : config_(config),
        kind_(kind),
        scaling_(kind.rope_scaling),
        prefix_(prefix),
        scaling_prefix_(prefix + "rope_scaling.") {}

  Status Check() const {
    Status checked;
    ForEachField(kLayerKindFields, [&](const auto& field) {
      if (checked) checked = CheckField(field, kind_, prefix_);
    });
    ForEachField(kRopeScalingFields, [&](const auto& field) {
      if (checked && IsOfType(field.rope_types, scaling_.type)) {
        checked = CheckField(field, scaling_, scaling_prefix_);
      }
    });
    CRIA_RETURN_IF_ERROR(checked);
    switch (scaling_.type) {
      case RopeScaling::Type::kNone:
      case RopeScaling::Type::kLinear:
        return {};
      case RopeScaling::Type::kLlama3:
        if (scaling_.high_freq_factor > scaling_.low_freq_factor) return {};
        return Bad(scaling_prefix_,
                   "high_freq_factor must be larger than rope_scaling.low_freq_factor");
      case RopeScaling::Type::kDynamic:
        // The exponent of the base is head_dim / (head_dim - 2), of the channels that are rotated.
        CRIA_RETURN_IF_ERROR(CheckRange("", config_.rotary_dim == 0 ? "head_dim" : "rotary_dim",
                                        config_.rotary_channels(kind_), 4, kMaxHeadDim));
        return CheckStretch();
      case RopeScaling::Type::kYarn:
        CRIA_RETURN_IF_ERROR(CheckStretch());
        CRIA_RETURN_IF_ERROR(CheckYarn());
        return CheckAttentionFactor();
      case RopeScaling::Type::kLongrope:
        CRIA_RETURN_IF_ERROR(CheckFactors("short_factor", scaling_.short_factor));
        CRIA_RETURN_IF_ERROR(CheckFactors("long_factor", scaling_.long_factor));
        return CheckAttentionFactor();
      case RopeScaling::Type::kProportional:
        if (scaling_.partial_rotary_factor > 1.0f) {
          return Bad(scaling_prefix_, "partial_rotary_factor must be at most 1");
        }
        if (config_.rotary_dim == 0) return {};
        return Bad(scaling_prefix_, "type is proportional, but rotary_dim is given, too");
    }
    return {};
  }

 private:
  static std::unexpected<Error> Bad(std::string_view prefix, std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}{}", prefix, what));
  }

  // For types that make the context longer.
  Status CheckStretch() const {
    if (scaling_.factor >= 1.0f) return {};
    return Fail(ErrorCode::kInvalidFile,
                Format("{}factor is {}, but must be at least 1", scaling_prefix_, scaling_.factor));
  }

  // The factor of cosines and sines is computed as one of scores, which have a part that is not
  // rotated otherwise.
  Status CheckAttentionFactor() const {
    if (config_.rotary_channels(kind_) == config_.head_dim_of(kind_) ||
        scaling_.attention_factor == 1.0f) {
      return {};
    }
    return Fail(ErrorCode::kInvalidFile,
                Format("{}attention_factor is {}, but must be 1 if rotary_dim is less than "
                       "head_dim",
                       scaling_prefix_, scaling_.attention_factor));
  }

  Status CheckFactors(std::string_view name, const std::vector<float>& factors) const {
    const size_t pairs = config_.rotary_channels(kind_) / 2;
    if (factors.size() != pairs) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}{} has {} entries, but {} pairs of each head are rotated",
                         scaling_prefix_, name, factors.size(), pairs));
    }
    for (size_t i = 0; i < pairs; ++i) {
      CRIA_RETURN_IF_ERROR(CheckPositive(scaling_prefix_, Format("{}[{}]", name, i), factors[i]));
    }
    return {};
  }

  Status CheckYarn() const {
    if (scaling_.beta_fast < scaling_.beta_slow) {
      return Bad(scaling_prefix_, "beta_fast must not be smaller than rope_scaling.beta_slow");
    }
    if (kind_.rope_theta <= 1.0f) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}rope_theta is {}, but must be above 1 if rope_scaling is yarn", prefix_,
                         kind_.rope_theta));
    }
    return {};
  }

  const ModelConfig& config_;
  const LayerKind& kind_;
  const RopeScaling& scaling_;
  const std::string& prefix_;
  const std::string scaling_prefix_;
};

// Checks the list of kinds, which kind each layer has, and each kind.
Status ValidateLayerKinds(const ModelConfig& config) {
  const size_t num_kinds = config.layer_kinds.size();
  const size_t num_layers = config.kind_of_layer.size();
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidFile, std::move(message));
  };
  if (num_kinds == 0 || num_kinds > kMaxLayerKinds) {
    return bad(Format("layer_kinds must have 1 to {} entries", kMaxLayerKinds));
  }
  if (num_layers != (num_kinds == 1 ? 0 : config.num_hidden_layers)) {
    return bad(Format("kind_of_layer has {} entries, but there are {} layers of {} kinds",
                      num_layers, config.num_hidden_layers, num_kinds));
  }
  for (size_t kind = 0; kind < num_kinds && num_kinds > 1; ++kind) {
    if (std::ranges::contains(config.kind_of_layer, kind)) continue;
    return bad(Format("kind_of_layer has no layer of layer_kinds[{}]", kind));
  }
  for (const uint8_t kind : config.kind_of_layer) {
    if (kind < num_kinds) continue;
    return bad(Format("kind_of_layer names layer_kinds[{}], but there are {}",
                      static_cast<size_t>(kind), num_kinds));
  }
  for (size_t kind = 0; kind < num_kinds; ++kind) {
    const std::string prefix = num_kinds == 1 ? "" : Format("layer_kinds[{}].", kind);
    CRIA_RETURN_IF_ERROR(LayerKindChecker(config, config.layer_kinds[kind], prefix).Check());
    CRIA_RETURN_IF_ERROR(ValidateRecurrentKind(config.layer_kinds[kind], prefix));
  }
  return {};
}

Status ValidateRotaryDim(const ModelConfig& config) {
  if (config.rotary_dim % 2 == 0 && config.rotary_dim <= config.head_dim) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("rotary_dim is {}, but must be even and at most head_dim ({})",
                     config.rotary_dim, config.head_dim));
}

Status ValidateExperts(const ModelConfig& config) {
  const bool has_dense = std::ranges::contains(config.layer_kinds, true, &LayerKind::dense_mlp);
  const bool has_mixture = std::ranges::contains(config.layer_kinds, false, &LayerKind::dense_mlp);
  if (config.num_experts == 0) {
    const bool is_dense = config.num_experts_per_tok == 0 && config.moe_intermediate_size == 0 &&
                          !config.norm_topk_prob && config.shared_expert_intermediate_size == 0 &&
                          !config.shared_expert_gate && !has_dense &&
                          config.scoring_func == ScoringFunc::kSoftmax && !config.use_expert_bias &&
                          !config.router_bias && !config.experts_bias &&
                          config.swiglu_limit == 0.0f;
    if (is_dense) return {};
    return Fail(ErrorCode::kInvalidFile,
                "num_experts is 0, but there are other fields of a mixture of experts");
  }
  CRIA_RETURN_IF_ERROR(
      CheckRange("", "num_experts_per_tok", config.num_experts_per_tok, 1, config.num_experts));
  CRIA_RETURN_IF_ERROR(
      CheckRange("", "moe_intermediate_size", config.moe_intermediate_size, 1, UINT32_MAX));
  if (config.shared_expert_gate && config.shared_expert_intermediate_size == 0) {
    return Fail(ErrorCode::kInvalidFile, "shared_expert_gate is true, but there is no such expert");
  }
  if (config.use_expert_bias && config.scoring_func != ScoringFunc::kSigmoid) {
    return Fail(ErrorCode::kUnsupported,
                "use_expert_bias is true, which this version only knows with scoring_func sigmoid");
  }
  if (config.mlp_bias) {
    return Fail(ErrorCode::kUnsupported,
                "mlp_bias is true, but experts_bias is the field for biases of experts");
  }
  if (config.router_bias && config.scoring_func != ScoringFunc::kSoftmax) {
    return Fail(ErrorCode::kUnsupported,
                "router_bias is true, which this version only knows with scoring_func softmax");
  }
  if ((config.experts_bias || config.swiglu_limit != 0.0f) &&
      (has_dense || config.shared_expert_intermediate_size != 0)) {
    return Fail(ErrorCode::kUnsupported,
                "experts_bias or swiglu_limit is given, which this version does not know beside a "
                "dense feed-forward or a shared expert");
  }
  if (!has_mixture) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("num_experts is {}, but dense_mlp is true for every layer", config.num_experts));
  }
  return {};
}

Status ValidateSinks(const ModelConfig& config) {
  const bool has_layer_without_rope = std::ranges::any_of(
      config.layer_kinds,
      [](const LayerKind& kind) { return kind.has_attention() && kind.no_rope; });
  // There, the cache may lack a number that is the same for all scores of a query.
  if (!config.attn_sinks || (!has_layer_without_rope && config.rotary_dim == 0)) return {};
  return Fail(
      ErrorCode::kUnsupported,
      "attn_sinks is true, which this version only knows with heads that are rotated whole");
}

Status ValidateClamp(const ModelConfig& config) {
  if ((config.swiglu_limit == 0.0f) != (config.swiglu_alpha == 0.0f)) {
    return Fail(ErrorCode::kInvalidFile, "one of swiglu_alpha and swiglu_limit is 0, but not both");
  }
  if (config.swiglu_limit == 0.0f || config.hidden_act == HiddenAct::kSilu) return {};
  return Fail(ErrorCode::kUnsupported, "swiglu_limit is given, but hidden_act is not silu");
}

Status ValidateUngated(const ModelConfig& config) {
  const bool is_xielu = config.hidden_act == HiddenAct::kXielu;
  if (config.ungated_mlp != (is_xielu || config.hidden_act == HiddenAct::kRelu2)) {
    return Fail(ErrorCode::kUnsupported,
                Format("ungated_mlp is {}, but hidden_act is {}, which this version does not know "
                       "together",
                       config.ungated_mlp, static_cast<uint32_t>(config.hidden_act)));
  }
  if (config.ungated_mlp && config.num_experts != 0) {
    return Fail(ErrorCode::kUnsupported,
                "ungated_mlp is true, which this version does not know of experts");
  }
  const size_t numbers = is_xielu ? config.num_hidden_layers * kXieluNumbers : 0;
  if (config.xielu.size() != numbers) {
    return Fail(ErrorCode::kInvalidFile,
                Format("xielu has {} numbers instead of {}", config.xielu.size(), numbers));
  }
  const bool are_finite =
      std::ranges::all_of(config.xielu, [](float x) { return std::isfinite(x); });
  if (are_finite) return {};
  return Fail(ErrorCode::kInvalidFile, "xielu has a number that is not finite");
}

size_t LongestContext(const LayerKind& kind, uint32_t max_position_embeddings) {
  const RopeScaling& scaling = kind.rope_scaling;
  const auto stretched = [&](uint32_t trained) -> size_t {
    // Limited, so that a factor that was not validated cannot overflow.
    const double tokens = std::min(double{scaling.factor} * trained, double{kMaxPositions});
    return std::max<size_t>(max_position_embeddings, static_cast<size_t>(tokens));
  };
  switch (scaling.type) {
    case RopeScaling::Type::kDynamic:
      return stretched(max_position_embeddings);
    case RopeScaling::Type::kYarn:
      return stretched(scaling.original_max_position_embeddings);
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kLinear:
    case RopeScaling::Type::kLlama3:
    case RopeScaling::Type::kLongrope:
    case RopeScaling::Type::kProportional:
      break;
  }
  return max_position_embeddings;
}

}  // namespace

float LayerKind::score_factor() const {
  const bool has_factor = rope_scaling.type == RopeScaling::Type::kYarn ||
                          rope_scaling.type == RopeScaling::Type::kLongrope;
  if (no_rope || !has_factor) return 1.0f;
  return rope_scaling.attention_factor * rope_scaling.attention_factor;
}

const LayerKind& ModelConfig::attention_kind() const {
  const auto kind = std::ranges::find_if(layer_kinds, &LayerKind::has_attention);
  return kind == layer_kinds.end() ? layer_kinds.front() : *kind;
}

bool ModelConfig::has_dense_layers() const {
  return num_experts == 0 || enable_moe_block ||
         std::ranges::contains(layer_kinds, true, &LayerKind::dense_mlp);
}

bool ModelConfig::has_linear_attention() const {
  return std::ranges::contains(layer_kinds, true, &LayerKind::linear_attention);
}

bool ModelConfig::shares_all_pages() const {
  return std::ranges::all_of(layer_kinds, [](const LayerKind& kind) {
    return kind.has_attention() && kind.sliding_window == 0;
  });
}

bool ModelConfig::has_mamba() const {
  return std::ranges::contains(layer_kinds, true, &LayerKind::mamba);
}

bool ModelConfig::has_short_conv() const {
  return std::ranges::contains(layer_kinds, true, &LayerKind::short_conv);
}

size_t ModelConfig::most_query_channels() const {
  size_t most = 0;
  for (const LayerKind& kind : layer_kinds) {
    if (kind.has_attention()) most = std::max(most, query_channels(kind));
  }
  return most;
}

size_t ModelConfig::most_qkv_channels() const {
  size_t most = 0;
  for (const LayerKind& kind : layer_kinds) {
    if (kind.has_attention()) most = std::max(most, qkv_channels(kind));
  }
  return most;
}

float ModelConfig::query_factor(size_t position) const {
  if (llama_4_scaling_beta == 0.0f || position < llama_4_scaling_positions) return 1.0f;
  const size_t times = position / llama_4_scaling_positions;
  return static_cast<float>(1.0 + llama_4_scaling_beta * std::log1p(static_cast<double>(times)));
}

size_t ModelConfig::longest_context() const {
  // Distances in a layer with a window are shorter than the window.
  const bool all_have_windows = std::ranges::none_of(layer_kinds, [](const LayerKind& kind) {
    return kind.has_attention() && kind.sliding_window == 0;
  });
  size_t longest = kMaxPositions;
  for (const LayerKind& kind : layer_kinds) {
    if (!kind.has_attention() || (kind.sliding_window != 0 && !all_have_windows)) continue;
    longest = std::min(longest, LongestContext(kind, max_position_embeddings));
  }
  return longest;
}

Status ValidateConfig(const ModelConfig& config) {
  Status checked;
  ForEachField(kModelConfigFields, [&](const auto& field) {
    if (checked) checked = CheckField(field, config);
  });
  CRIA_RETURN_IF_ERROR(checked);
  CRIA_RETURN_IF_ERROR(CheckRange("", "num_key_value_heads", config.num_key_value_heads, 1,
                                  config.num_attention_heads));
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return Fail(ErrorCode::kInvalidFile,
                Format("num_attention_heads ({}) is not a multiple of num_key_value_heads ({})",
                       config.num_attention_heads, config.num_key_value_heads));
  }
  if (config.hidden_size % 2 != 0) {
    return Fail(
        ErrorCode::kUnsupported,
        Format("hidden_size is {}, but this version needs an even one", config.hidden_size));
  }
  if (config.head_dim % 2 != 0) {
    return Fail(ErrorCode::kInvalidFile,
                Format("head_dim is {}, but rotary embeddings need an even one", config.head_dim));
  }
  CRIA_RETURN_IF_ERROR(ValidateRotaryDim(config));
  if (config.qk_norm && config.joint_qk_norm) {
    return Fail(ErrorCode::kInvalidFile, "qk_norm and joint_qk_norm are both true");
  }
  CRIA_RETURN_IF_ERROR(ValidateUngated(config));
  CRIA_RETURN_IF_ERROR(ValidateSinks(config));
  CRIA_RETURN_IF_ERROR(ValidateClamp(config));
  if (config.qk_norm_after_rope && !config.qk_norm) {
    return Fail(ErrorCode::kInvalidFile, "qk_norm_after_rope is true, but qk_norm is not");
  }
  if ((config.llama_4_scaling_beta == 0.0f) != (config.llama_4_scaling_positions == 0)) {
    return Fail(ErrorCode::kInvalidFile,
                "one of llama_4_scaling_beta and llama_4_scaling_positions is 0, but not both");
  }
  CRIA_RETURN_IF_ERROR(ValidateExperts(config));
  CRIA_RETURN_IF_ERROR(ValidateLayerKinds(config));
  CRIA_RETURN_IF_ERROR(ValidateLayerSizes(config));
  CRIA_RETURN_IF_ERROR(ValidateRecurrentLayers(config));
  if (!config.attn_output_gate || !config.use_attention_gate) return {};
  return Fail(ErrorCode::kInvalidFile, "attn_output_gate and use_attention_gate are both true");
}

}  // namespace cria
