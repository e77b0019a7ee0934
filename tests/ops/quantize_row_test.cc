#include "ops/quantize_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace cria::ops {
namespace {

constexpr int8_t kUntouchedValue = 99;

std::vector<float> RandomRow(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (float& value : row) value = normal(random);
  return row;
}

// The definition: the range of the row, 0 included, is cut into 255 steps; every value is the
// nearest step, and 0 is exactly a step.
RowQuantization ExpectQuantizedAsDefined(const std::vector<float>& row) {
  std::vector<int8_t> values(row.size() + 1, kUntouchedValue);
  const RowQuantization quantization = QuantizeRow(row.data(), row.size(), values.data());
  EXPECT_EQ(values.back(), kUntouchedValue);
  const double lowest = std::min(0.0f, std::ranges::min(row));
  const double highest = std::max(0.0f, std::ranges::max(row));
  EXPECT_GE(quantization.zero_point, -128);
  EXPECT_LE(quantization.zero_point, 127);
  if (highest > lowest) {
    EXPECT_NEAR(quantization.scale, (highest - lowest) / 255, (highest - lowest) / 255 * 1e-5);
  }
  const double scale = quantization.scale;
  for (size_t i = 0; i < row.size(); ++i) {
    const double value = scale * (values[i] - quantization.zero_point);
    // Half a step, and another half at the ends, where the zero point's rounding can cut values
    // off.
    const bool at_end = values[i] == -128 || values[i] == 127;
    EXPECT_NEAR(value, row[i], scale * (at_end ? 1.001 : 0.501)) << "value " << i;
    if (row[i] == 0.0f) {
      EXPECT_EQ(values[i], quantization.zero_point);
    }
  }
  return quantization;
}

TEST(QuantizeRowTest, QuantizesOverTheRowsOwnRange) {
  for (const size_t size : {1, 2, 7, 15, 16, 17, 31, 64, 172, 576, 2048}) {
    SCOPED_TRACE(size);
    const std::vector<float> row = RandomRow(size, static_cast<unsigned>(size));
    ExpectQuantizedAsDefined(row);
    std::vector<float> positive, negative, far;
    for (const float value : row) {
      positive.push_back(std::abs(value) * 1e-3f);
      negative.push_back(-std::abs(value) * 1e4f);
      far.push_back(value + 1000.0f);
    }
    EXPECT_EQ(ExpectQuantizedAsDefined(positive).zero_point, -128);
    EXPECT_EQ(ExpectQuantizedAsDefined(negative).zero_point, 127);
    ExpectQuantizedAsDefined(far);
  }
}

TEST(QuantizeRowTest, ZerosComeBackAsZeros) {
  std::vector<float> row(33, 0.0f);
  EXPECT_TRUE(std::isfinite(ExpectQuantizedAsDefined(row).scale));
  row = RandomRow(33, 1);
  row[5] = 0.0f;
  ExpectQuantizedAsDefined(row);
}

TEST(QuantizeRowTest, AnEndOfTheRangeMayStandAnywhere) {
  for (size_t place = 0; place < 41; ++place) {
    std::vector<float> row = RandomRow(41, 2);
    row[place] = 37.0f;
    ExpectQuantizedAsDefined(row);
    row[place] = -37.0f;
    ExpectQuantizedAsDefined(row);
  }
}

TEST(QuantizeRowTest, VerySmallAndVeryLargeNumbersStaySound) {
  for (const float size : {1e-38f, 1e-36f, 1e-30f, 1e30f, 1e38f}) {
    std::vector<float> row = RandomRow(20, 3);
    for (float& value : row) value *= size / 4.0f;
    std::vector<int8_t> values(row.size());
    const RowQuantization quantization = QuantizeRow(row.data(), row.size(), values.data());
    EXPECT_TRUE(std::isfinite(quantization.scale)) << size;
    for (size_t i = 0; i < row.size(); ++i) {
      const double value = double{quantization.scale} * (values[i] - quantization.zero_point);
      EXPECT_NEAR(value, row[i], std::max(size / 50.0, 1e-34)) << size;
    }
  }
}

TEST(QuantizeRowTest, WhatIsNoFiniteNumberIsNotLost) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (size_t place = 0; place < 37; ++place) {
      std::vector<float> row = RandomRow(37, 4);
      row[place] = wrong;
      std::vector<int8_t> values(row.size());
      EXPECT_TRUE(std::isnan(QuantizeRow(row.data(), row.size(), values.data()).scale))
          << wrong << " at " << place;
    }
  }
}

}  // namespace
}  // namespace cria::ops
