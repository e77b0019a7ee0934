#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/platform.h"
#include "core/thread_pool.h"
#include "ops/quantized_blocks.h"
#include "xnn/linear.h"
#include "xnn/packing.h"
#include "xnn/stored_weights.h"

namespace cria::xnn {

inline constexpr size_t kMaxRows = 128;
inline constexpr size_t kMaxThreads = 4;
inline constexpr float kUntouched = -12345.0f;

// Rows of activations, and the buffer for a layer's results. The strides may be larger than
// necessary.
class Activations {
 public:
  Activations(const TensorLayout& layout, unsigned seed, size_t gap = 0)
      : inputs_(layout.input_channels),
        outputs_(layout.output_channels),
        input_stride_(layout.input_channels + gap),
        padded_inputs_(layout.padded_input_channels),
        quantized_stride_(ops::QuantizedBlocks::Bytes(padded_inputs_) + gap),
        input_(kMaxRows * input_stride_ + kReadableSlackBytes),
        quantized_(kMaxRows * quantized_stride_ + kReadableSlackBytes),
        quantizations_(kMaxRows + kExtraRowQuantizations),
        output_(kMaxRows * outputs_) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& value : input_) value = normal(random);
    // The contents of the padding must have no effect.
    for (int8_t& value : quantized_) value = static_cast<int8_t>(random());
  }

  LinearBuffers buffers() {
    return {.input = input_.data(),
            .input_stride = input_stride_,
            .quantized = {quantized_.data(), quantizations_.data()},
            .quantized_stride = quantized_stride_,
            .output = output_.data(),
            .output_stride = outputs_};
  }

  // Buffers of the input's rows from `row` on; results are written from the first row on.
  LinearBuffers BuffersFrom(size_t row) {
    LinearBuffers from = buffers();
    from.input += row * input_stride_;
    return from;
  }

  // Quantizes the first `rows` rows, or those from row `first` on.
  void Quantize(const Linear& linear, size_t rows, size_t first = 0) {
    form_ = linear.input_form();
    for (size_t r = 0; r < rows; ++r) {
      linear.Quantize(&input_[(first + r) * input_stride_], buffers().quantized, r);
    }
  }

  void ForgetOutput() { std::ranges::fill(output_, kUntouched); }
  void ForgetQuantizations() {
    std::ranges::fill(quantizations_, RowQuantization{.zero_point = 77, .scale = 1e6f});
  }
  void Renew(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.5f, 2.0f);
    for (float& value : input_) value = normal(random);
  }
  const std::vector<float>& output() const { return output_; }

  // Compares the first `rows` rows of output with the definition in double arithmetic, and wants
  // the others untouched.
  void ExpectProduct(const StoredWeights& weights, size_t rows) const {
    std::vector<size_t> all(rows);
    std::iota(all.begin(), all.end(), size_t{0});
    ExpectProduct(weights, rows, all);
  }

  // The same, but looks at all outputs of the `checked` rows alone.
  void ExpectProduct(const StoredWeights& weights, size_t rows,
                     const std::vector<size_t>& checked) const {
    for (size_t i = rows * outputs_; i < output_.size(); ++i) {
      ASSERT_EQ(output_[i], kUntouched) << "row " << i / outputs_ << " output " << i % outputs_;
    }
    std::vector<Terms> terms;
    for (const size_t r : checked) terms.push_back(TermsOf(r));
    const bool is_int8_of_blocks =
        form_ == InputForm::kBlocks && weights.layout().scheme == Scheme::kQc8w;
    std::vector<double> column(inputs_);
    for (size_t o = 0; o < outputs_; ++o) {
      for (size_t i = 0; i < inputs_; ++i) column[i] = weights.value(o, i);
      // With AVX-VNNI, one lane of a sum has 64 steps more for each weight, and another takes them
      // away.
      const double added = is_int8_of_blocks ? 64.0 * weights.row_scale(o) : 0.0;
      for (size_t c = 0; c < checked.size(); ++c) {
        double sum = 0.0;
        double magnitude = 0.0;
        for (size_t i = 0; i < inputs_; ++i) {
          sum += column[i] * terms[c].values[i];
          magnitude += (std::abs(column[i]) + added) * terms[c].largest[i];
        }
        ASSERT_NEAR(output_[checked[c] * outputs_ + o], sum, 1e-6 * magnitude)
            << "row " << checked[c] << " output " << o;
      }
    }
  }

 private:
  // What the layer multiplies of a row: for quantized schemes, the quantized values read back. The
  // kernels subtract the zero point's share at the end, so that errors grow with both parts.
  struct Terms {
    std::vector<double> values;
    std::vector<double> largest;
  };

  Terms TermsOf(size_t r) const {
    Terms terms;
    for (size_t i = 0; i < inputs_; ++i) {
      if (form_ == InputForm::kF32) {
        const double value = input_[r * input_stride_ + i];
        terms.values.push_back(value);
        terms.largest.push_back(std::abs(value));
        continue;
      }
      const int8_t* const codes = &quantized_[r * quantized_stride_];
      if (form_ == InputForm::kBlocks) {
        const float* const scales = ops::QuantizedBlocks::Scales(codes, padded_inputs_);
        terms.values.push_back(double{scales[i / ops::kActivationBlock]} * codes[i]);
        terms.largest.push_back(std::abs(terms.values.back()));
        continue;
      }
      const RowQuantization& row = quantizations_[r];
      const int code = codes[i];
      terms.values.push_back(double{row.scale} * (code - row.zero_point));
      terms.largest.push_back(double{row.scale} * (std::abs(code) + std::abs(row.zero_point)));
    }
    return terms;
  }

  size_t inputs_;
  size_t outputs_;
  size_t input_stride_;
  size_t padded_inputs_;
  size_t quantized_stride_;
  InputForm form_ = InputForm::kF32;
  std::vector<float> input_;
  std::vector<int8_t> quantized_;
  std::vector<RowQuantization> quantizations_;
  std::vector<float> output_;
};

// A linear layer and packed weights.
struct PackedLinear {
  platform::PageBlock packed;
  Linear linear;
  Status Run(size_t rows, const ThreadPool& pool) { return linear.Run(packed.bytes(), rows, pool); }
};

inline Result<PackedLinear> MakeLinear(const LinearWeights& weights, const LinearBuffers& buffers) {
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(weights.layout));
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock packed, platform::PageBlock::Allocate(bytes));
  CRIA_RETURN_IF_ERROR(Pack(weights, packed.bytes()));
  CRIA_ASSIGN_OR_RETURN(Linear linear, Linear::Create(weights.layout, buffers, kMaxThreads));
  return PackedLinear{std::move(packed), std::move(linear)};
}

}  // namespace cria::xnn
