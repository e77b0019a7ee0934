#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "converter/quantize/scale_search.h"
#include "weights/block_format.h"

namespace cria {

// For a format with planes of codes, a scale and a minimum.
constexpr ScaleRule BlockRule(const BlockFormat& format) {
  const auto largest = static_cast<float>((1 << format.code_bits) - 1);
  return {.range = {0.0f, largest},
          .type = ScaleType::kBf16,
          .grid = {.whole_codes = 0,
                   .first = largest - 0.05f * largest,
                   .step = 0.05f * largest,
                   .count = 16},
          .has_minimum = true};
}

// Stores a block of such a format: its codes, which are whole numbers of the range, and a scale and
// a minimum that bf16 holds exactly.
void StoreBlock(const BlockFormat& format, std::span<const float> codes, float scale, float minimum,
                std::byte* stored);

// Quantizes one row to blocks of such a format. `row` has whole blocks, of which the first `inputs`
// values count. Returns the squared error.
double QuantizeBlocksOfRow(const BlockFormat& format, std::span<const float> row, size_t inputs,
                           std::span<std::byte> stored);

}  // namespace cria
