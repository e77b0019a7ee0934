#pragma once

#include <cstdint>
#include <span>

#include "converter/quantize/scale_search.h"

namespace cria {

// -128 is not used, as in XNNPACK's own symmetric quantization.
inline constexpr ScaleRule kQc8wRule = {
    .range = {-127.0f, 127.0f},
    .type = ScaleType::kF32,
    .grid = {.whole_codes = 0, .first = 124.5f, .step = 2.5f, .count = 20}};

// Quantizes one row to int8 with one scale; there are as many codes as values. `scratch` as in
// SearchScale.
ScaleFit QuantizeQc8wRow(std::span<const float> row, std::span<float> scratch,
                         std::span<int8_t> codes);

}  // namespace cria
