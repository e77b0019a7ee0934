#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/numeric.h"
#include "model/tensor_table.h"
#include "weights/block_numbers.h"
#include "weights/random_blocks.h"
#include "xnn/linear.h"
#include "xnn/packing.h"

namespace cria::xnn {

struct Shape {
  Scheme scheme;
  size_t outputs;
  size_t inputs;
  size_t block_size = 0;
};

inline std::string NameOf(const Shape& shape) {
  return Format("{}_{}x{}_blocks_{}", SchemeName(shape.scheme), shape.outputs, shape.inputs,
                shape.block_size);
}

// Random weights as a model file stores them, and the same as numbers.
class StoredWeights {
 public:
  StoredWeights(const Shape& shape, unsigned seed) : random_(seed) {
    const TensorSpec spec = {TensorRole::kQkvProj, 0, shape.outputs, shape.inputs};
    layout_ = MakeTensorLayout(spec, shape.scheme, shape.block_size);
    data_.resize(layout_.data_bytes() + kReadableSlackBytes);
    scales_.resize(layout_.scale_bytes());
    values_.assign(shape.outputs * shape.inputs, 0.0);
    for (size_t row = 0; row < shape.outputs; ++row) FillRow(row);
  }

  LinearWeights view() const {
    return {layout_, std::span(data_).first(layout_.data_bytes()), scales_};
  }
  const TensorLayout& layout() const { return layout_; }
  // kQc8w: what one step of a row's weights is.
  float row_scale(size_t row) const {
    float scale;
    std::memcpy(&scale, scales_.data() + row * layout_.row_scale_bytes(), sizeof scale);
    return scale;
  }
  // [outputs][inputs]
  double value(size_t row, size_t column) const {
    return values_[row * layout_.input_channels + column];
  }

 private:
  void FillRow(size_t row) {
    const size_t inputs = layout_.input_channels;
    std::byte* const data = data_.data() + row * layout_.row_bytes();
    std::byte* const scales = scales_.data() + row * layout_.row_scale_bytes();
    double* const values = values_.data() + row * inputs;
    std::uniform_real_distribution<float> uniform(0.001f, 0.02f);
    switch (layout_.scheme) {
      case Scheme::kF32:
        for (size_t i = 0; i < inputs; ++i) {
          const float weight = uniform(random_) - 0.01f;
          std::memcpy(data + i * sizeof weight, &weight, sizeof weight);
          values[i] = weight;
        }
        break;
      case Scheme::kQc8w: {
        const float scale = uniform(random_);
        std::memcpy(scales, &scale, sizeof scale);
        for (size_t i = 0; i < inputs; ++i) {
          const int weight = static_cast<int>(random_() % 255) - 127;
          data[i] = static_cast<std::byte>(weight);
          values[i] = double{scale} * weight;
        }
        break;
      }
      case Scheme::kQb4w:
        // Padding stays zero, which is stored as 8.
        std::fill_n(data, layout_.row_bytes(), std::byte{0x88});
        for (size_t block = 0; block < layout_.scales_per_row(); ++block) {
          const uint16_t scale = FloatToBf16(uniform(random_));
          std::memcpy(scales + block * sizeof scale, &scale, sizeof scale);
          for (size_t i = block * layout_.block_size;
               i < std::min(inputs, (block + 1) * layout_.block_size); ++i) {
            const unsigned nibble = random_() % 16;
            const int shift = i % 2 == 0 ? 0 : 4;
            data[i / 2] = (data[i / 2] & static_cast<std::byte>(0xf0 >> shift)) |
                          static_cast<std::byte>(nibble << shift);
            values[i] = double{Bf16ToFloat(scale)} * (static_cast<int>(nibble) - 8);
          }
        }
        break;
      default: {
        const BlockFormat& format = *layout_.block_format();
        const std::vector<std::byte> blocks =
            support::RandomBlocks(format, layout_.row_bytes() / format.bytes, random_);
        std::ranges::copy(blocks, data);
        std::vector<float> weights(inputs);
        DequantizeBlocks(format, data, weights);
        std::ranges::copy(weights, values);
        break;
      }
    }
  }

  std::mt19937 random_;
  TensorLayout layout_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  std::vector<double> values_;
};

}  // namespace cria::xnn
