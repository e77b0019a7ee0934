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

// How the scale of each block, or row, is searched in a scheme that has a quantizer.
ScaleRule ScaleRuleOf(Scheme scheme);

// How many consecutive weights of a row share a scale.
size_t WeightsOfScale(const TensorLayout& layout);

// A row of a matrix as its scheme stores it: code * scale - minimum are its weights.
struct CodedRow {
  std::vector<float> codes;     // [padded_input_channels], whole numbers.
  std::vector<float> scales;    // One for each WeightsOfScale, of the scheme's type.
  std::vector<float> minimums;  // Likewise; zeros in a scheme without them.

  // With codes of 0 and scales of 1.
  static CodedRow Empty(const TensorLayout& layout);
};

// Stores rows in the scheme of a layout: Q4_0, one of XNNPACK's or of the converter's own. Only
// this class knows every quantizer.
class RowQuantizer {
 public:
  explicit RowQuantizer(const TensorLayout& layout);

  // `row` has layout.padded_input_channels floats, with zeros as padding; `data` and `scales`
  // receive layout.row_bytes() and layout.row_scale_bytes(). They must be aligned for their
  // elements.
  QuantizationError Quantize(std::span<const float> row, std::span<std::byte> data,
                             std::span<std::byte> scales);

  // Stores codes that were chosen elsewhere.
  void Store(const CodedRow& row, std::span<std::byte> data, std::span<std::byte> scales) const;

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
