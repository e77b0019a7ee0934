#pragma once

#include <cstdint>
#include <string_view>

#include "cria/error.h"

namespace cria {

// Checks of one number of a model file. Errors are of kInvalidFile and name the field, with
// `prefix`, which says where in the configuration it is, before its name.

Status CheckRange(std::string_view prefix, std::string_view field, uint32_t value, uint32_t min,
                  uint32_t max);

// NaN and infinities are refused, too.
Status CheckNotNegative(std::string_view field, float value);
Status CheckPositive(std::string_view prefix, std::string_view field, float value);

}  // namespace cria
