#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "converter/quantize/scale_search.h"
#include "model/tensor_table.h"

namespace cria {

// The error of a stored tensor and the magnitude of its weights, as sums of squares over the
// weights.
struct QuantizationError {
  double squared_error = 0.0;
  double squared_weights = 0.0;

  QuantizationError& operator+=(const QuantizationError& other) {
    squared_error += other.squared_error;
    squared_weights += other.squared_weights;
    return *this;
  }
};

// The error of weights that are stored as they are: none.
QuantizationError ErrorOfKept(std::span<const float> weights);

// How the scale of each block, or row, is searched in a scheme with scales.
ScaleRule ScaleRuleOf(Scheme scheme);

// Stores rows in the scheme of a layout, one of XNNPACK's. Only this class knows every quantizer.
class RowQuantizer {
 public:
  explicit RowQuantizer(const TensorLayout& layout);

  // `row` has layout.padded_input_channels floats, with zeros as padding; `data` and `scales`
  // receive layout.row_bytes() and layout.row_scale_bytes(). They must be aligned for their
  // elements.
  QuantizationError Quantize(std::span<const float> row, std::span<std::byte> data,
                             std::span<std::byte> scales);

  // Stores codes that were chosen elsewhere, padding included, with scales of the scheme's type:
  // what stands for code * scale.
  void Store(std::span<const float> codes, std::span<const float> code_scales,
             std::span<std::byte> data, std::span<std::byte> scales) const;

  // What such data and scales stand for; `row` as above. The runtime has the same for its
  // processors in ops, which the converter does not use.
  void Dequantize(std::span<const std::byte> data, std::span<const std::byte> scales,
                  std::span<float> row) const;

  // Replaces `row`, of layout.input_channels floats, by what is stored of it.
  void Round(std::span<float> row);

 private:
  TensorLayout layout_;
  std::vector<float> scratch_;
  // What Round() stores; empty before the first call.
  std::vector<float> padded_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
};

}  // namespace cria
