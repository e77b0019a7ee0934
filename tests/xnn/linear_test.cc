#include "xnn/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "support/emulation.h"
#include "xnn/linear_fixture.h"
#include "xnn/row_bits.h"

namespace cria::xnn {
namespace {

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
