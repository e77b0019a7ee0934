#include "model/config.h"

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

Status ValidateRopeScaling(const RopeScaling& scaling) {
  if (scaling.type == RopeScaling::Type::kNone) return {};
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.factor", scaling.factor));
  if (scaling.type != RopeScaling::Type::kLlama3) return {};
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.low_freq_factor", scaling.low_freq_factor));
  CRIA_RETURN_IF_ERROR(CheckPositive("rope_scaling.high_freq_factor", scaling.high_freq_factor));
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    return Fail(ErrorCode::kInvalidFile,
                "rope_scaling.high_freq_factor must be larger than rope_scaling.low_freq_factor");
  }
  return CheckRange("rope_scaling.original_max_position_embeddings",
                    scaling.original_max_position_embeddings, 1, 1u << 24);
}

}  // namespace

Status ValidateConfig(const ModelConfig& config) {
  if (config.architecture != "LlamaForCausalLM") {
    return Fail(ErrorCode::kUnsupported,
                std::format("architecture \"{}\" is not supported; this version runs "
                            "LlamaForCausalLM",
                            config.architecture));
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
      CheckRange("max_position_embeddings", config.max_position_embeddings, 1, 1u << 24));
  CRIA_RETURN_IF_ERROR(CheckRange("sliding_window", config.sliding_window, 0, 1u << 24));
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
  return ValidateRopeScaling(config.rope_scaling);
}

}  // namespace cria
