#pragma once

#include <cstdint>
#include <span>

namespace cria::cli {

// Scales an embedding as llama.cpp's --embd-normalize does: with -1 not at all, with 0 so that the
// largest absolute value is 32760, with p >= 1 so that the p-norm is 1. Zeros stay zeros.
void NormalizeBy(int64_t norm, std::span<float> vector);

// The cosine of the angle between two vectors of one length; 0 if one of them is zero.
double CosineSimilarity(std::span<const float> a, std::span<const float> b);

}  // namespace cria::cli
