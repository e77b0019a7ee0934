#include "xnn/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "ops/quantized_blocks.h"
#include "support/emulation.h"
#include "xnn/row_bits.h"
#include "xnn/stored_weights.h"

namespace cria::xnn {
namespace {

constexpr size_t kMaxRows = 128;
constexpr size_t kMaxThreads = 4;
constexpr float kUntouched = -12345.0f;

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

Result<PackedLinear> MakeLinear(const LinearWeights& weights, const LinearBuffers& buffers) {
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(weights.layout));
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock packed, platform::PageBlock::Allocate(bytes));
  CRIA_RETURN_IF_ERROR(Pack(weights, packed.bytes()));
  CRIA_ASSIGN_OR_RETURN(Linear linear, Linear::Create(weights.layout, buffers, kMaxThreads));
  return PackedLinear{std::move(packed), std::move(linear)};
}

class LinearTest : public testing::TestWithParam<Shape> {
 protected:
  static ThreadPool Threads(size_t count) {
    auto pool = ThreadPool::Create(count);
    EXPECT_TRUE(pool) << pool.error().message();
    return std::move(*pool);
  }
};

TEST_P(LinearTest, MultipliesAsDefinedForEveryNumberOfRows) {
  const ThreadPool pool = Threads(2);
  const StoredWeights weights(GetParam(), 1);
  Activations activations(weights.layout(), 2);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear) << linear.error().message();
  for (const size_t rows : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5}, kMaxRows,
                            size_t{1}, size_t{5}, size_t{5}, size_t{2}}) {
    SCOPED_TRACE(rows);
    activations.ForgetOutput();
    activations.Renew(static_cast<unsigned>(rows));
    activations.Quantize(linear->linear, rows);
    const Status run = linear->Run(rows, pool);
    ASSERT_TRUE(run) << run.error().message();
    activations.ExpectProduct(weights, rows);
    if (HasFatalFailure()) return;
  }
}

// Kernels are most likely to be wrong for tiles of rows that are not full: tests every number of
// rows, with buffers that earlier, longer runs have filled.
TEST_P(LinearTest, TilesThatAreNotFullGiveTheSameRows) {
  const ThreadPool pool = Threads(1);
  const StoredWeights weights(GetParam(), 12);
  Activations activations(weights.layout(), 13);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear);
  for (size_t rows = 40; rows > 0; --rows) {
    activations.ForgetOutput();
    activations.ForgetQuantizations();
    activations.Quantize(linear->linear, rows);
    ASSERT_TRUE(linear->Run(rows, pool));
    activations.ExpectProduct(weights, rows);
    if (HasFatalFailure()) FAIL() << rows << " rows";
  }
}

TEST_P(LinearTest, StridesMayBeLargerThanTheChannels) {
  const ThreadPool pool = Threads(1);
  const StoredWeights weights(GetParam(), 3);
  Activations activations(weights.layout(), 4, /*gap=*/36);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear) << linear.error().message();
  for (const size_t rows : {1, 7}) {
    activations.ForgetOutput();
    activations.Quantize(linear->linear, rows);
    ASSERT_TRUE(linear->Run(rows, pool));
    activations.ExpectProduct(weights, rows);
  }
}

TEST_P(LinearTest, IsBitwiseEqualOnEveryNumberOfThreads) {
  const StoredWeights weights(GetParam(), 5);
  Activations activations(weights.layout(), 6);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear) << linear.error().message();
  for (const size_t rows : {size_t{1}, size_t{3}, kMaxRows}) {
    activations.Quantize(linear->linear, rows);
    std::vector<float> alone;
    for (const size_t num_threads : {1, 2, 3, 1}) {
      // Emulated, threads that wait take the others' time.
      if (support::IsEmulated() && num_threads > 2) continue;
      activations.ForgetOutput();
      const ThreadPool pool = Threads(num_threads);
      ASSERT_TRUE(linear->Run(rows, pool));
      if (alone.empty()) alone = activations.output();
      ASSERT_EQ(
          std::memcmp(alone.data(), activations.output().data(), alone.size() * sizeof(float)), 0)
          << num_threads << " threads, " << rows << " rows";
    }
  }
}

TEST_P(LinearTest, LayersMayShareBuffers) {
  const ThreadPool pool = Threads(2);
  const StoredWeights first_weights(GetParam(), 7);
  const StoredWeights second_weights(GetParam(), 8);
  Activations activations(first_weights.layout(), 9);
  auto first = MakeLinear(first_weights.view(), activations.buffers());
  auto second = MakeLinear(second_weights.view(), activations.buffers());
  ASSERT_TRUE(first && second);
  for (const size_t rows : {4, 1, 4}) {
    activations.ForgetOutput();
    activations.Quantize(first->linear, rows);
    ASSERT_TRUE(first->Run(rows, pool));
    activations.ExpectProduct(first_weights, rows);
    activations.ForgetOutput();
    ASSERT_TRUE(second->Run(rows, pool));
    activations.ExpectProduct(second_weights, rows);
  }
}

// Rows that end have what is stored of them, and the others have all their outputs: the bits of a
// product of all rows by all outputs.
TEST_P(LinearTest, OnlyRowsThatAreKeptNeedWhatIsNotStored) {
  const StoredWeights weights(GetParam(), 31);
  Activations activations(weights.layout(), 32);
  auto made = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(made);
  const size_t outputs = weights.layout().output_channels;
  constexpr size_t kRows = 40;
  activations.Quantize(made->linear, kRows);
  for (const size_t num_threads : {1, 2}) {
    const ThreadPool pool = Threads(num_threads);
    ASSERT_TRUE(made->Run(kRows, pool));
    const std::vector<float> all = activations.output();
    for (const OutputRange& stored : {OutputRange{0, outputs}, OutputRange{outputs, outputs},
                                      OutputRange{outputs / 3, outputs * 2 / 3}}) {
      for (const std::vector<uint32_t>& kept :
           std::vector<std::vector<uint32_t>>{{}, {39}, {0, 1, 2, 17, 38, 39}}) {
        activations.ForgetOutput();
        ASSERT_TRUE(made->linear.RunStored(made->packed.bytes(), kRows, stored, kept, pool));
        for (size_t i = 0; i < kRows * outputs; ++i) {
          const size_t output = i % outputs;
          const bool is_stored = output >= stored.begin && output < stored.end;
          const auto row = static_cast<uint32_t>(i / outputs);
          if (!is_stored && !std::ranges::binary_search(kept, row)) continue;
          ASSERT_EQ(activations.output()[i], all[i]) << "row " << row << ", output " << output;
        }
      }
    }
  }
}

// Every row must have the bits that it has in a product of its group alone.
TEST_P(LinearTest, GroupsOfRowsAreMultipliedByTheirOwnMatrices) {
  const ThreadPool pool = Threads(2);
  const StoredWeights first_weights(GetParam(), 21);
  const StoredWeights second_weights(GetParam(), 22);
  Activations activations(first_weights.layout(), 23);
  auto first = MakeLinear(first_weights.view(), activations.buffers());
  auto second = MakeLinear(second_weights.view(), activations.buffers());
  ASSERT_TRUE(first && second);
  const size_t outputs = first_weights.layout().output_channels;
  for (const auto& [num_first, num_second] : {std::pair<size_t, size_t>(1, 1), {3, 2}, {40, 9}}) {
    const size_t rows = num_first + num_second;
    activations.ForgetOutput();
    activations.Quantize(first->linear, rows);
    const ops::RowGroup groups[] = {{first->packed.bytes().data(), 0, num_first},
                                    {second->packed.bytes().data(), num_first, num_second}};
    ASSERT_TRUE(first->linear.RunGroups(groups, pool));
    const std::vector<float> grouped = activations.output();
    activations.Quantize(second->linear, rows);
    ASSERT_TRUE(second->Run(rows, pool));
    const std::vector<float> by_second = activations.output();
    activations.Quantize(first->linear, rows);
    ASSERT_TRUE(first->Run(rows, pool));
    if (!RowsAreBitwiseAsAlone(GetParam().scheme)) continue;
    for (size_t i = 0; i < rows * outputs; ++i) {
      const float expected = i < num_first * outputs ? activations.output()[i] : by_second[i];
      ASSERT_EQ(grouped[i], expected) << "row " << i / outputs << " of " << rows;
    }
    for (size_t i = rows * outputs; i < grouped.size(); ++i) ASSERT_EQ(grouped[i], kUntouched);
  }
}

TEST_P(LinearTest, OneMultipliesByMatricesInTurn) {
  const ThreadPool pool = Threads(2);
  const StoredWeights first_weights(GetParam(), 14);
  const StoredWeights second_weights(GetParam(), 15);
  Activations activations(first_weights.layout(), 16);
  auto first = MakeLinear(first_weights.view(), activations.buffers());
  auto second = MakeLinear(second_weights.view(), activations.buffers());
  ASSERT_TRUE(first && second);
  for (const size_t rows : {size_t{1}, size_t{16}, size_t{1}, kMaxRows}) {
    activations.Quantize(first->linear, rows);
    activations.ForgetOutput();
    ASSERT_TRUE(first->linear.Run(second->packed.bytes(), rows, pool));
    activations.ExpectProduct(second_weights, rows);
    activations.ForgetOutput();
    ASSERT_TRUE(first->linear.Run(first->packed.bytes(), rows, pool));
    activations.ExpectProduct(first_weights, rows);
    if (HasFatalFailure()) return;
  }
}

TEST_P(LinearTest, WeightsAreNoLongerReadOnceItIsMade) {
  const ThreadPool pool = Threads(1);
  const StoredWeights weights(GetParam(), 10);
  Activations activations(weights.layout(), 11);
  auto copy = std::make_unique<StoredWeights>(weights);
  auto linear = MakeLinear(copy->view(), activations.buffers());
  ASSERT_TRUE(linear);
  std::memset(const_cast<std::byte*>(copy->view().data.data()), 0x77, copy->view().data.size());
  copy.reset();
  PackedLinear moved = std::move(*linear);
  activations.ForgetOutput();
  activations.Quantize(moved.linear, 2);
  ASSERT_TRUE(moved.Run(2, pool));
  activations.ExpectProduct(weights, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearTest,
    testing::Values(Shape{Scheme::kF32, 1, 1}, Shape{Scheme::kF32, 33, 17},
                    Shape{Scheme::kF32, 96, 172}, Shape{Scheme::kQc8w, 1, 1},
                    Shape{Scheme::kQc8w, 33, 17}, Shape{Scheme::kQc8w, 96, 172},
                    Shape{Scheme::kQc8w, 100, 256}, Shape{Scheme::kQb4w, 1, 32, 32},
                    Shape{Scheme::kQb4w, 33, 64, 32}, Shape{Scheme::kQb4w, 64, 172, 32},
                    Shape{Scheme::kQb4w, 40, 80, 128}, Shape{Scheme::kQb4w, 40, 192, 64},
                    Shape{Scheme::kQb4w, 17, 256, 128}, Shape{Scheme::kQb4w, 48, 512, 256},
                    Shape{Scheme::kQb4w, 9, 6, 32}, Shape{Scheme::kQ4_0, 33, 96},
                    Shape{Scheme::kQ8_0, 40, 160}, Shape{Scheme::kQ4K, 48, 512},
                    Shape{Scheme::kQ6K, 17, 256}, Shape{Scheme::kW4G64, 33, 96},
                    Shape{Scheme::kW3G64, 20, 320}),
    [](const testing::TestParamInfo<Shape>& shape) { return NameOf(shape.param); });

// Large enough to be multiplied in slices, with a last one that is as large as the others, larger,
// or smaller. One is so small that a core's cache holds all slices.
class LinearSlicesTest : public LinearTest {};

TEST_P(LinearSlicesTest, FewRowsAndManyGiveTheSame) {
  const ThreadPool pool = Threads(2);
  const StoredWeights weights(GetParam(), 1);
  Activations activations(weights.layout(), 2);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear) << linear.error().message();
  std::vector<size_t> counts = {15, 57};
  if (!support::IsEmulated()) counts.insert(counts.end(), {16, 37});
  for (const size_t rows : counts) {
    activations.ForgetOutput();
    activations.Quantize(linear->linear, rows);
    ASSERT_TRUE(linear->Run(rows, pool));
    // A slice has some outputs of all rows, so that few rows show which slices are wrong.
    activations.ExpectProduct(weights, rows, {0, rows / 2, rows - 1});
    const std::vector<float> shared = activations.output();
    ASSERT_TRUE(linear->Run(rows, Threads(1)));
    ASSERT_EQ(activations.output(), shared) << rows << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearSlicesTest,
    testing::Values(Shape{Scheme::kF32, 256, 4096}, Shape{Scheme::kQc8w, 1000, 150},
                    Shape{Scheme::kF32, 300, 2100}, Shape{Scheme::kQc8w, 391, 8192},
                    Shape{Scheme::kQb4w, 512, 8192, 32}, Shape{Scheme::kQb4w, 700, 8192, 64},
                    Shape{Scheme::kQ4K, 391, 2048}),
    [](const auto& shape) { return NameOf(shape.param); });

class LinearRowBitsTest : public testing::TestWithParam<Scheme> {};

// What a batch of several sequences rests on.
TEST_P(LinearRowBitsTest, ARowIsBitwiseAsAloneWhereItIsSaidToBe) {
  const Scheme scheme = GetParam();
  const ThreadPool pool = *ThreadPool::Create(1);
  bool is_as_alone = true;
  for (const auto& [outputs, inputs] : {std::pair{96, 160}, {33, 64}, {64, 1056}, {130, 416}}) {
    const size_t block_size = scheme == Scheme::kQb4w ? 32 : 0;
    const StoredWeights weights(Shape{scheme, size_t(outputs), size_t(inputs), block_size}, 3);
    constexpr size_t kRows = 40;
    Activations together(weights.layout(), 4);
    Activations alone(weights.layout(), 4);
    auto linear = MakeLinear(weights.view(), together.buffers());
    ASSERT_TRUE(linear) << linear.error().message();
    std::vector<float> expected;
    for (size_t row = 0; row < kRows; ++row) {
      auto one = MakeLinear(weights.view(), alone.BuffersFrom(row));
      ASSERT_TRUE(one);
      alone.Quantize(one->linear, 1, row);
      ASSERT_TRUE(one->Run(1, pool));
      expected.insert(expected.end(), alone.output().begin(), alone.output().begin() + outputs);
    }
    for (const size_t rows : {2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 31, 40}) {
      together.Quantize(linear->linear, rows);
      ASSERT_TRUE(linear->Run(rows, pool));
      is_as_alone = is_as_alone && std::memcmp(together.output().data(), expected.data(),
                                               rows * size_t(outputs) * sizeof(float)) == 0;
    }
  }
  EXPECT_EQ(is_as_alone, xnn::RowsAreBitwiseAsAlone(scheme));
}

INSTANTIATE_TEST_SUITE_P(Schemes, LinearRowBitsTest,
                         testing::Values(Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w, Scheme::kQ5_0,
                                         Scheme::kW4G64),
                         [](const auto& tested) { return std::string(SchemeName(tested.param)); });

TEST(LinearRowsTest, NoneAreNoWork) {
  const StoredWeights weights({Scheme::kQc8w, 33, 17}, 1);
  Activations activations(weights.layout(), 2);
  auto linear = MakeLinear(weights.view(), activations.buffers());
  ASSERT_TRUE(linear);
  activations.ForgetOutput();
  EXPECT_TRUE(linear->Run(0, *ThreadPool::Create(1)));
  activations.ExpectProduct(weights, 0);
}

TEST(LinearPaddingTest, PaddedShapesAreAmongThem) {
  const StoredWeights weights({Scheme::kQb4w, 64, 172, 32}, 1);
  EXPECT_EQ(weights.layout().padded_input_channels, 192u);
}

TEST(LinearErrorTest, WhatXnnpackRefusesIsAnError) {
  const StoredWeights weights({Scheme::kQb4w, 4, 96, 32}, 1);
  Activations activations(weights.layout(), 2);
  LinearWeights wrong = weights.view();
  wrong.layout.block_size = 48;
  const auto linear = MakeLinear(wrong, activations.buffers());
  ASSERT_FALSE(linear);
  EXPECT_EQ(linear.error().code(), ErrorCode::kInternal);
  EXPECT_NE(linear.error().message().find("a linear layer"), std::string::npos);
}

TEST(LinearErrorTest, BlockScalesThatAreNoPositiveNumbersAreAnError) {
  for (const float scale : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    const StoredWeights weights({Scheme::kQb4w, 4, 96, 32}, 1);
    Activations activations(weights.layout(), 2);
    std::vector<uint16_t> scales(4 * 3, FloatToBf16(1.0f));
    scales[7] = FloatToBf16(scale);
    LinearWeights wrong = weights.view();
    wrong.scales = std::as_bytes(std::span(scales));
    EXPECT_FALSE(MakeLinear(wrong, activations.buffers())) << scale;
  }
}

}  // namespace
}  // namespace cria::xnn
