#pragma once

#include <span>

namespace cria {

// Functions of rows that are, like linear algebra, compiled for processors with AVX2 where there
// are any. Sums are added up in a fixed order, so that they give the same on every processor of an
// architecture.

double SumOfSquares(std::span<const float> values);

// Scores, times `factor`, become weights with a sum of 1.
void SoftMaxRow(float factor, std::span<float> scores);

// output = up * gate / (1 + e^-gate); all have the same size.
void SiluRow(std::span<const float> gate, std::span<const float> up, std::span<float> output);

}  // namespace cria
