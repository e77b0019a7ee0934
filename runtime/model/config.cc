#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string_view>

namespace cria {
namespace {

Status CheckRange(std::string_view field, uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("{} is {}, outside {} to {}", field, value, least, most));
}

Status CheckPositive(std::string_view field, float value) {
  if (std::isfinite(value) && value > 0.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("{} is {}, but must be a positive number", field, value));
}

constexpr uint32_t kMaxPositions = 1u << 24;

Status ValidateLlama3(const RopeScaling& scaling) {
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.low_freq_factor", scaling.low_freq_factor));
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.high_freq_factor", scaling.high_freq_factor));
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    return Fail(ErrorCode::kInvalidFile,
                "rope_scaling.high_freq_factor must be larger than rope_scaling.low_freq_factor");
  }
  return CheckRange("rope_scaling.original_max_position_embeddings",
                    scaling.original_max_position_embeddings, 1, kMaxPositions);
}

Status ValidateYarn(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.attention_factor", scaling.attention_factor));
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.beta_fast", scaling.beta_fast));
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.beta_slow", scaling.beta_slow));
  if (scaling.beta_fast < scaling.beta_slow) {
    return Fail(ErrorCode::kInvalidFile,
                "rope_scaling.beta_fast must not be smaller than rope_scaling.beta_slow");
  }
  if (config.rope_theta <= 1.0f) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("rope_theta is {}, but must be above 1 if rope_scaling is yarn",
                            config.rope_theta));
  }
  return CheckRange("rope_scaling.original_max_position_embeddings",
                    scaling.original_max_position_embeddings, 1, kMaxPositions);
}

// For types that make the context longer.
Status CheckStretch(const RopeScaling& scaling) {
  if (scaling.factor >= 1.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              std::format("rope_scaling.factor is {}, but must be at least 1", scaling.factor));
}

Status ValidateRopeScaling(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.type == RopeScaling::Type::kNone) return {};
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.factor", scaling.factor));
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kLinear:
      return {};
    case RopeScaling::Type::kLlama3:
      return ValidateLlama3(scaling);
    case RopeScaling::Type::kDynamic:
      // The exponent of the base is head_dim / (head_dim - 2).
      CRIA_RETURN_IF_ERROR(CheckRange("head_dim", config.head_dim, 4, kMaxHeadDim));
      return CheckStretch(scaling);
    case RopeScaling::Type::kYarn:
      CRIA_RETURN_IF_ERROR(CheckStretch(scaling));
      return ValidateYarn(config);
  }
  return {};
}

}  // namespace

std::string KnownArchitectures() {
  std::string names;
  for (size_t i = 0; i < kArchitectures.size(); ++i) {
    if (i > 0) names += i + 1 < kArchitectures.size() ? ", " : " and ";
    names += kArchitectures[i];
  }
  return names;
}

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
  if (!std::ranges::contains(kArchitectures, config.architecture)) {
    return Fail(ErrorCode::kUnsupported,
                std::format("architecture \"{}\" is not supported; this version runs {}",
                            config.architecture, KnownArchitectures()));
  }
  CRIA_RETURN_IF_ERROR(CheckRange("hidden_size", config.hidden_size, 1, 1u << 17));
  CRIA_RETURN_IF_ERROR(CheckRange("intermediate_size", config.intermediate_size, 1, 1u << 19));
  CRIA_RETURN_IF_ERROR(CheckRange("num_hidden_layers", config.num_hidden_layers, 1, 1024));
  CRIA_RETURN_IF_ERROR(CheckRange("num_attention_heads", config.num_attention_heads, 1, 1024));
  CRIA_RETURN_IF_ERROR(
      CheckRange("num_key_value_heads", config.num_key_value_heads, 1, config.num_attention_heads));
  CRIA_RETURN_IF_ERROR(CheckRange("head_dim", config.head_dim, 2, kMaxHeadDim));
  CRIA_RETURN_IF_ERROR(CheckRange("vocab_size", config.vocab_size, 1, 1u << 22));
  CRIA_RETURN_IF_ERROR(
      CheckRange("max_position_embeddings", config.max_position_embeddings, 1, kMaxPositions));
  CRIA_RETURN_IF_ERROR(CheckRange("sliding_window", config.sliding_window, 0, kMaxPositions));
  CRIA_RETURN_IF_ERROR(CheckPositive("rms_norm_eps", config.rms_norm_eps));
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_theta", config.rope_theta));
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
