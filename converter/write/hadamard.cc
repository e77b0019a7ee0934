#include "converter/write/hadamard.h"

#include <cmath>

namespace cria {
namespace {

// `values` are [size][stride]: transforms the first index.
void Transform(size_t size, size_t stride, std::span<float> values) {
  const size_t part = size & (~size + 1);
  for (size_t half = 1; half < part; half *= 2) {
    for (size_t i = 0; i < size; i += 2 * half) {
      for (size_t j = i * stride; j < (i + half) * stride; ++j) {
        const float a = values[j];
        const float b = values[j + half * stride];
        values[j] = a + b;
        values[j + half * stride] = a - b;
      }
    }
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(part)));
  for (float& value : values) value *= factor;
}

}  // namespace

void RotateRows(size_t columns, std::span<float> values) {
  for (size_t first = 0; first < values.size(); first += columns) {
    Transform(columns, 1, values.subspan(first, columns));
  }
}

void RotateColumns(size_t columns, std::span<float> values) {
  Transform(values.size() / columns, columns, values);
}

}  // namespace cria
