#include "ops/quantized_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace cria::ops {
namespace {

// A row in the place that it needs, with bytes behind it that must stay.
struct Stored {
  Stored(const std::vector<float>& row, size_t padded_size)
      : size(padded_size), bytes(QuantizedBlocks::Bytes(padded_size) + 4, int8_t{77}) {
    QuantizeBlocks(row.data(), row.size(), padded_size, {0, QuantizedBlocks::Blocks(padded_size)},
                   bytes.data());
  }
  explicit Stored(const std::vector<float>& row) : Stored(row, row.size()) {}

  float scale(size_t block) const { return QuantizedBlocks::Scales(bytes.data(), size)[block]; }
  int32_t offset(size_t block) const { return QuantizedBlocks::Offsets(bytes.data(), size)[block]; }

  size_t size;
  std::vector<int8_t> bytes;
};

// Compares with the definition in double.
void ExpectQuantizedAsDefined(const std::vector<float>& row, size_t padded_size) {
  const Stored stored(row, padded_size);
  for (size_t b = 0; b < QuantizedBlocks::Blocks(padded_size); ++b) {
    float largest = 0.0f;
    const size_t first = b * kActivationBlock;
    for (size_t i = first; i < std::min(row.size(), first + kActivationBlock); ++i) {
      largest = std::max(largest, std::abs(row[i]));
    }
    ASSERT_FLOAT_EQ(stored.scale(b), largest / 127) << "block " << b;
    int32_t sum = 0;
    for (size_t i = first; i < first + kActivationBlock; ++i) {
      const int code = stored.bytes[i];
      sum += code;
      const double steps = i < row.size() && largest > 0 ? double{row[i]} * 127 / largest : 0.0;
      ASSERT_LE(std::abs(steps - code), 0.5001) << "value " << i;
      ASSERT_GE(code, -127);
    }
    ASSERT_EQ(stored.offset(b), BlockOffset(sum)) << "block " << b;
  }
  for (size_t i = stored.bytes.size() - 4; i < stored.bytes.size(); ++i) {
    ASSERT_EQ(stored.bytes[i], 77);
  }
}

TEST(QuantizedBlocksTest, QuantizesEachBlockOverItsOwnRange) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t size : {1, 7, 31, 32, 33, 64, 100, 172, 576, 2048}) {
    SCOPED_TRACE(size);
    std::vector<float> row(size);
    for (size_t i = 0; i < size; ++i) {
      row[i] = normal(random) * std::pow(10.0f, static_cast<float>(i / kActivationBlock % 5));
    }
    for (const size_t padding : {0, 32, 63}) {
      ExpectQuantizedAsDefined(row, size + padding);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuantizedBlocksTest, PartsAreThoseOfTheWhole) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t size : {64, 100, 700}) {
    SCOPED_TRACE(size);
    std::vector<float> row(size);
    for (float& value : row) value = normal(random);
    const size_t padded_size = size + 40;
    const Stored whole(row, padded_size);
    const size_t num_blocks = QuantizedBlocks::Blocks(padded_size);
    for (const size_t part : {size_t{1}, size_t{3}, size_t{16}}) {
      std::vector<int8_t> bytes(whole.bytes.size(), int8_t{77});
      for (size_t begin = 0; begin < num_blocks; begin += part) {
        QuantizeBlocks(row.data(), size, padded_size, {begin, std::min(num_blocks, begin + part)},
                       bytes.data());
      }
      EXPECT_EQ(bytes, whole.bytes) << "parts of " << part;
    }
  }
}

TEST(QuantizedBlocksTest, ZerosAreZeros) {
  ExpectQuantizedAsDefined(std::vector<float>(70), 70);
  std::vector<float> row(64);
  row[40] = 3.0f;
  ExpectQuantizedAsDefined(row, 64);
}

TEST(QuantizedBlocksTest, VerySmallAndVeryLargeNumbersStaySound) {
  for (const float largest : {1e-45f, 1e-38f, 1e-30f, 1e30f, std::numeric_limits<float>::max()}) {
    SCOPED_TRACE(largest);
    std::vector<float> row(32);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = largest * ((static_cast<float>(i) - 16.0f) / 16.0f);
    }
    const Stored stored(row);
    ASSERT_TRUE(std::isfinite(stored.scale(0)));
    for (size_t i = 0; i < row.size(); ++i) {
      ASSERT_NEAR(double{stored.scale(0)} * stored.bytes[i], row[i], largest / 127 * 0.501 + 1e-35);
    }
  }
}

TEST(QuantizedBlocksTest, WhatIsNoFiniteNumberIsNotLost) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const size_t place : {0, 17, 31}) {
      std::vector<float> row(96, 1.0f);
      row[32 + place] = value;
      const Stored stored(row);
      EXPECT_TRUE(std::isnan(stored.scale(1)));
      EXPECT_FLOAT_EQ(stored.scale(0), 1.0f / 127);
      EXPECT_FLOAT_EQ(stored.scale(2), 1.0f / 127);
    }
  }
}

}  // namespace
}  // namespace cria::ops
