#include "converter/write/hadamard.h"

#include "ops/hadamard.h"

namespace cria {

void RotateRows(size_t columns, std::span<float> values) {
  for (size_t first = 0; first < values.size(); first += columns) {
    ops::HadamardTransform(&values[first], columns);
  }
}

void RotateColumns(size_t columns, std::span<float> values) {
  ops::HadamardTransform(values.data(), values.size() / columns, columns);
}

}  // namespace cria
