#pragma once

#include <cstddef>
#include <span>

namespace cria {

// Quantizes one row to blocks of GGML's Q4_0: an f16 scale, which may be negative, for 32 codes
// from -8 to 7. The size of `row` is a multiple of 32. Finds the codes of weights that were
// products of such a scale and such codes before, also if they were rounded to bf16 since. Returns
// the squared error.
double QuantizeQ40Row(std::span<const float> row, std::span<std::byte> stored);

}  // namespace cria
