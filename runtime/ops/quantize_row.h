#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_quantization.h"

namespace cria::ops {

// Quantizes a row of `size` floats, at least one, to int8 over its own range, 0 included (dynamic
// asymmetric quantization, Jacob et al. 2018): 255 steps, each value the nearest step, 0 exactly
// one. Where a value, or the range, is no finite number, the scale is NaN, so that it is not lost.
RowQuantization QuantizeRow(const float* row, size_t size, int8_t* output);

}  // namespace cria::ops
