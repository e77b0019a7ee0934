#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "converter/quantize/scale_search.h"

namespace cria {

inline constexpr ScaleRule kQb4wRule = {
    .range = {-8.0f, 7.0f},
    .type = ScaleType::kBf16,
    .grid = {.whole_codes = 4, .first = 5.0f, .step = 1.0f / 3.0f, .count = 16}};

// One row of int4 weights, two to a byte with the even input in the low nibble, and a bf16 scale
// for each block. `row` holds a multiple of `block_size`, which is even; padding is zeros and
// becomes exactly zero. Returns the squared error. `scratch` as in SearchScale, for one block.
double QuantizeQb4wRow(std::span<const float> row, size_t block_size, std::span<float> scratch,
                       std::span<uint8_t> nibbles, std::span<uint16_t> scales);

}  // namespace cria
