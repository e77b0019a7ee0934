#pragma once

#include <cstdint>
#include <span>

#include "converter/quantize/scale_search.h"

namespace cria {

// -128 is left out, as XNNPACK's own symmetric quantization does.
inline constexpr ScaleRule kQc8wRule = {
    .range = {-127.0f, 127.0f},
    .type = ScaleType::kF32,
    .grid = {.whole_codes = 0, .first = 124.5f, .step = 2.5f, .count = 20}};

// One row of int8 weights and its scale; the same number of codes as of values. `scratch` as in
// SearchScale.
ScaleFit QuantizeQc8wRow(std::span<const float> row, std::span<float> scratch,
                         std::span<int8_t> codes);

}  // namespace cria
