#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_quantization.h"

namespace cria::ops {

// Quantizes a row of `size` floats, at least one, to int8 over its own range, which is extended to
// include 0 (dynamic asymmetric quantization, Jacob et al. 2018): 255 steps, each value rounded to
// the nearest step, and 0 exactly a step. If a value or the range is not finite, the scale is NaN,
// so that the results are NaN, too.
RowQuantization QuantizeRow(const float* row, size_t size, int8_t* output);

}  // namespace cria::ops
