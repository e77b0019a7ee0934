#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/tensor_table.h"

namespace cria {

// What a tensor lost by being stored, and the size it had, both summed over its weights.
struct QuantizationError {
  double squared_error = 0.0;
  double squared_weights = 0.0;

  QuantizationError& operator+=(const QuantizationError& other) {
    squared_error += other.squared_error;
    squared_weights += other.squared_weights;
    return *this;
  }
};

// Stores rows in the scheme of a layout: the one place that knows every quantizer.
class RowQuantizer {
 public:
  explicit RowQuantizer(const TensorLayout& layout);

  // `row` holds layout.padded_input_channels floats, zeros where it is padded; `data` and `scales`
  // receive layout.row_bytes() and layout.row_scale_bytes(). They are aligned for their elements.
  QuantizationError Quantize(std::span<const float> row, std::span<std::byte> data,
                             std::span<std::byte> scales);

 private:
  TensorLayout layout_;
  std::vector<float> scratch_;
};

}  // namespace cria
