#include "xnn/row_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/thread_pool.h"

namespace cria::xnn {
namespace {

constexpr int8_t kUntouched = 99;

// Rows of floats, their quantized form, and both with more between the rows than belongs to them.
struct Rows {
  Rows(size_t most_rows, size_t num_channels, unsigned seed, size_t gap = 0)
      : channels(num_channels),
        input_stride(num_channels + gap),
        output_stride(num_channels + 2 * gap),
        input(most_rows * input_stride + kReadableSlackBytes),
        values(most_rows * output_stride + kReadableSlackBytes, kUntouched),
        quantizations(most_rows + kExtraRowQuantizations) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (float& value : input) value = normal(generator);
  }

  Result<RowQuantizer> MakeQuantizer() {
    return RowQuantizer::Create(channels, input.data(), input_stride,
                                {values.data(), quantizations.data()}, output_stride);
  }
  std::span<float> row(size_t r) { return std::span(input).subspan(r * input_stride, channels); }

  size_t channels;
  size_t input_stride;
  size_t output_stride;
  std::vector<float> input;
  std::vector<int8_t> values;
  std::vector<RowQuantization> quantizations;
};

// The definition: the range of the row, 0 included, is cut into 255 steps; every value is the
// nearest step, and 0 is exactly a step.
void ExpectQuantizedAsDefined(Rows& rows, size_t r) {
  const std::span<const float> row = rows.row(r);
  const RowQuantization quantization = rows.quantizations[r];
  const double lowest = std::min(0.0f, *std::ranges::min_element(row));
  const double highest = std::max(0.0f, *std::ranges::max_element(row));
  EXPECT_GE(quantization.zero_point, -128);
  EXPECT_LE(quantization.zero_point, 127);
  if (highest > lowest) {
    EXPECT_NEAR(quantization.scale, (highest - lowest) / 255, (highest - lowest) / 255 * 1e-5);
  }
  const double scale = quantization.scale;
  for (size_t i = 0; i < row.size(); ++i) {
    const int quantized = rows.values[r * rows.output_stride + i];
    const double value = scale * (quantized - quantization.zero_point);
    // Half a step, and another half at the ends, where the zero point's rounding can cut values
    // off.
    const bool at_end = quantized == -128 || quantized == 127;
    ASSERT_NEAR(value, row[i], scale * (at_end ? 1.001 : 0.501)) << "row " << r << " value " << i;
  }
}

TEST(RowQuantizerTest, QuantizesEveryRowOverItsOwnRange) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool);
  for (const size_t channels : {1, 2, 7, 31, 64, 172, 576, 2048}) {
    SCOPED_TRACE(channels);
    Rows rows(5, channels, static_cast<unsigned>(channels));
    // Rows of different sizes, one positive, one negative, one far from zero.
    for (float& value : rows.row(1)) value = std::abs(value) * 1e-3f;
    for (float& value : rows.row(2)) value = -std::abs(value) * 1e4f;
    for (float& value : rows.row(3)) value += 1000.0f;
    auto quantizer = rows.MakeQuantizer();
    ASSERT_TRUE(quantizer) << quantizer.error().message();
    ASSERT_TRUE(quantizer->Run(5, *pool));
    for (size_t r = 0; r < 5; ++r) ExpectQuantizedAsDefined(rows, r);
    EXPECT_EQ(rows.quantizations[1].zero_point, -128);
    EXPECT_EQ(rows.quantizations[2].zero_point, 127);
  }
}

TEST(RowQuantizerTest, ZerosComeBackAsZeros) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool);
  Rows rows(2, 64, 1);
  std::ranges::fill(rows.row(0), 0.0f);
  rows.row(1)[5] = 0.0f;
  auto quantizer = rows.MakeQuantizer();
  ASSERT_TRUE(quantizer);
  ASSERT_TRUE(quantizer->Run(2, *pool));
  EXPECT_TRUE(std::isfinite(rows.quantizations[0].scale));
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(rows.values[i] - rows.quantizations[0].zero_point, 0);
  }
  EXPECT_EQ(rows.values[rows.output_stride + 5], rows.quantizations[1].zero_point);
}

TEST(RowQuantizerTest, StridesAreKeptAndNothingElseIsWritten) {
  const auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  Rows rows(6, 100, 3, /*gap=*/9);
  auto quantizer = rows.MakeQuantizer();
  ASSERT_TRUE(quantizer);
  ASSERT_TRUE(quantizer->Run(4, *pool));
  for (size_t r = 0; r < 6; ++r) {
    const std::span<const int8_t> row =
        std::span(rows.values).subspan(r * rows.output_stride, rows.output_stride);
    if (r < 4) ExpectQuantizedAsDefined(rows, r);
    for (size_t i = r < 4 ? rows.channels : 0; i < rows.output_stride; ++i) {
      ASSERT_EQ(row[i], kUntouched) << "row " << r << " byte " << i;
    }
  }
}

TEST(RowQuantizerTest, RowsMayChangeBackAndForth) {
  const auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  Rows rows(128, 96, 4);
  auto quantizer = rows.MakeQuantizer();
  ASSERT_TRUE(quantizer);
  for (const size_t count : {1, 128, 1, 2, 2, 5, 1}) {
    std::ranges::fill(rows.values, kUntouched);
    for (float& value : rows.input) value = -value * 1.5f;
    ASSERT_TRUE(quantizer->Run(count, *pool));
    for (size_t r = 0; r < count; ++r) ExpectQuantizedAsDefined(rows, r);
  }
}

TEST(RowQuantizerTest, TheLastRowsQuantizationIsRepeatedBehindIt) {
  const auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool);
  Rows rows(7, 32, 6);
  auto quantizer = rows.MakeQuantizer();
  ASSERT_TRUE(quantizer);
  for (const size_t count : {7, 2, 1}) {
    ASSERT_TRUE(quantizer->Run(count, *pool));
    for (size_t i = 0; i < kExtraRowQuantizations; ++i) {
      EXPECT_EQ(rows.quantizations[count + i].zero_point, rows.quantizations[count - 1].zero_point);
      EXPECT_EQ(rows.quantizations[count + i].scale, rows.quantizations[count - 1].scale);
    }
  }
}

TEST(RowQuantizerTest, ResultsDoNotDependOnTheThreads) {
  Rows rows(33, 192, 5);
  auto quantizer = rows.MakeQuantizer();
  ASSERT_TRUE(quantizer);
  std::vector<std::vector<int8_t>> results;
  for (const size_t num_threads : {1, 2, 3, 1}) {
    const auto pool = ThreadPool::Create(num_threads);
    ASSERT_TRUE(pool);
    std::ranges::fill(rows.values, kUntouched);
    ASSERT_TRUE(quantizer->Run(33, *pool));
    results.push_back(rows.values);
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace cria::xnn
