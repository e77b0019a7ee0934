#include "model/check_number.h"

#include <cmath>

#include "core/format.h"

namespace cria {

Status CheckRange(std::string_view prefix, std::string_view field, uint32_t value, uint32_t min,
                  uint32_t max) {
  if (value >= min && value <= max) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{}{} is {}, outside {} to {}", prefix, field, value, min, max));
}

Status CheckNotNegative(std::string_view field, float value) {
  if (std::isfinite(value) && value >= 0.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{} is {}, but must be 0 or a positive number", field, value));
}

Status CheckPositive(std::string_view prefix, std::string_view field, float value) {
  if (std::isfinite(value) && value > 0.0f) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{}{} is {}, but must be a positive number", prefix, field, value));
}

}  // namespace cria
