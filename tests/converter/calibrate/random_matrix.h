#pragma once

#include <cstdint>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "support/random_values.h"

namespace cria {

// Normal numbers.
inline Matrix RandomMatrix(size_t rows, size_t columns, uint64_t seed) {
  Matrix matrix(rows, columns);
  support::FillNormal(seed, 0, matrix.values());
  return matrix;
}

// Rows of inputs of a matrix whose channels are correlated and of different sizes, as activations
// are: each channel has a part of one before it.
inline Matrix CorrelatedInputs(size_t rows, size_t columns, uint64_t seed) {
  Matrix inputs = RandomMatrix(rows, columns, seed);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 3; i < columns; ++i) inputs(row, i) += 0.9f * inputs(row, i - 3);
    for (size_t i = 0; i < columns; ++i) inputs(row, i) *= 0.3f + static_cast<float>(i % 5);
  }
  return inputs;
}

}  // namespace cria
