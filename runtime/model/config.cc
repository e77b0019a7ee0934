#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <format>
#include <string_view>

#include "model/config_fields.h"

namespace cria {
namespace {

Status CheckRange(std::string_view prefix, std::string_view field, uint32_t value, uint32_t min,
                  uint32_t max) {
  if (value >= min && value <= max) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("{}{} is {}, outside {} to {}", prefix, field, value, min, max));
}

Status CheckPositive(std::string_view prefix, std::string_view field, float value) {
  if (std::isfinite(value) && value > 0.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("{}{} is {}, but must be a positive number", prefix, field, value));
}

// Checks the bounds that kRopeScalingFields or kModelConfigFields has for the field.
template <typename Owner, typename Value>
Status CheckField(const ConfigField<Owner, Value>& field, const Owner& owner,
                  std::string_view prefix = "") {
  const Value& value = owner.*field.member;
  if constexpr (std::same_as<Value, uint32_t>) {
    return CheckRange(prefix, field.name, value, field.min, field.max);
  }
  if constexpr (std::same_as<Value, float>) {
    if (field.must_be_positive) return CheckPositive(prefix, field.name, value);
  }
  return {};
}

Status ValidateYarn(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.beta_fast < scaling.beta_slow) {
    return Fail(ErrorCode::kInvalidFile,
                "rope_scaling.beta_fast must not be smaller than rope_scaling.beta_slow");
  }
  if (config.rope_theta <= 1.0f) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("rope_theta is {}, but must be above 1 if rope_scaling is yarn",
                            config.rope_theta));
  }
  return {};
}

// For types that make the context longer.
Status CheckStretch(const RopeScaling& scaling) {
  if (scaling.factor >= 1.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("rope_scaling.factor is {}, but must be at least 1", scaling.factor));
}

Status ValidateRopeScaling(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  Status checked;
  ForEachField(kRopeScalingFields, [&](const auto& field) {
    if (checked && IsOfType(field.rope_types, scaling.type)) {
      checked = CheckField(field, scaling, "rope_scaling.");
    }
  });
  CRIA_RETURN_IF_ERROR(checked);
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kLinear:
      return {};
    case RopeScaling::Type::kLlama3:
      if (scaling.high_freq_factor > scaling.low_freq_factor) return {};
      return Fail(ErrorCode::kInvalidFile,
                  "rope_scaling.high_freq_factor must be larger than rope_scaling.low_freq_factor");
    case RopeScaling::Type::kDynamic:
      // The exponent of the base is head_dim / (head_dim - 2).
      CRIA_RETURN_IF_ERROR(CheckRange("", "head_dim", config.head_dim, 4, kMaxHeadDim));
      return CheckStretch(scaling);
    case RopeScaling::Type::kYarn:
      CRIA_RETURN_IF_ERROR(CheckStretch(scaling));
      return ValidateYarn(config);
  }
  return {};
}

}  // namespace

size_t ModelConfig::longest_context() const {
  const auto stretched = [&](uint32_t trained) -> size_t {
    // Limited, so that a factor that was not validated cannot overflow.
    const double tokens = std::min(double{rope_scaling.factor} * trained, double{kMaxPositions});
    return std::max<size_t>(max_position_embeddings, static_cast<size_t>(tokens));
  };
  switch (rope_scaling.type) {
    case RopeScaling::Type::kDynamic:
      return stretched(max_position_embeddings);
    case RopeScaling::Type::kYarn:
      return stretched(rope_scaling.original_max_position_embeddings);
    default:
      return max_position_embeddings;
  }
}

float ModelConfig::score_factor() const {
  if (rope_scaling.type != RopeScaling::Type::kYarn) return 1.0f;
  return rope_scaling.attention_factor * rope_scaling.attention_factor;
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
    return Fail(
        ErrorCode::kInvalidFile,
        std::format("num_attention_heads ({}) is not a multiple of num_key_value_heads ({})",
                    config.num_attention_heads, config.num_key_value_heads));
  }
  if (config.hidden_size % 2 != 0) {
    return Fail(
        ErrorCode::kUnsupported,
        std::format("hidden_size is {}, but this version needs an even one", config.hidden_size));
  }
  if (config.head_dim % 2 != 0) {
    return Fail(
        ErrorCode::kInvalidFile,
        std::format("head_dim is {}, but rotary embeddings need an even one", config.head_dim));
  }
  return ValidateRopeScaling(config);
}

}  // namespace cria
