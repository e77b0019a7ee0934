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

// Quantizes one row to int4, two weights per byte with the even input in the low nibble, and one
// bf16 scale per block. The size of `row` must be a multiple of `block_size`, which is even;
// padding must be zeros and stays exactly zero. Returns the squared error. `scratch` as in
// SearchScale, for one block.
double QuantizeQb4wRow(std::span<const float> row, size_t block_size, std::span<float> scratch,
                       std::span<uint8_t> nibbles, std::span<uint16_t> scales);

}  // namespace cria
