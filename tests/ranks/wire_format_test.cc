#include "ranks/wire_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cria::ranks {
namespace {

std::vector<float> SentAndReceived(const std::vector<float>& values, WireType type) {
  std::vector<std::byte> bytes(WireBytes(values.size(), type));
  ToWire(values, type, bytes);
  std::vector<float> received(values.size());
  FromWire(bytes, type, received);
  // Adding is the same from zero on.
  std::vector<float> sums(values.size(), 0.0f);
  AddFromWire(bytes, type, sums);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(sums[i] == received[i] || std::isnan(received[i])) << i;
  }
  return received;
}

std::vector<float> RandomValues(size_t count, float size) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = size * normal(random);
  return values;
}

TEST(WireFormat, Sizes) {
  EXPECT_EQ(WireBytes(4096, WireType::kF32), 16384u);
  EXPECT_EQ(WireBytes(4096, WireType::kF16), 8192u + 256u);
  EXPECT_EQ(WireBytes(4096, WireType::kInt8), 4096u + 256u);
  EXPECT_EQ(WireBytes(33, WireType::kInt8), 33u + 4u);
  EXPECT_EQ(WireBytes(0, WireType::kF16), 0u);
}

TEST(WireFormat, F32IsExact) {
  const std::vector<float> values = RandomValues(77, 1e30f);
  EXPECT_EQ(SentAndReceived(values, WireType::kF32), values);
}

// Numbers may have any size, also one that f16 cannot hold.
TEST(WireFormat, ErrorsAreHalfAStep) {
  for (const size_t count : {1, 31, 32, 33, 1000}) {
    for (const float size : {1e-44f, 1e-38f, 1e-20f, 1e-3f, 1.0f, 1e6f, 1e20f, 1e37f}) {
      const std::vector<float> values = RandomValues(count, size);
      const std::vector<float> f16 = SentAndReceived(values, WireType::kF16);
      const std::vector<float> int8 = SentAndReceived(values, WireType::kInt8);
      for (size_t first = 0; first < count; first += kWireBlockValues) {
        const size_t end = std::min(count, first + kWireBlockValues);
        float largest = 0.0f;
        for (size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
        for (size_t i = first; i < end; ++i) {
          // Numbers below 2^-28 of the largest are subnormal in f16.
          EXPECT_LE(std::abs(f16[i] - values[i]),
                    0x1p-11f * std::abs(values[i]) + 0x1p-38f * largest + 1e-45f)
              << values[i];
          // The scale has eight bits: half a step is at most 0.4% more, and the largest number is
          // cut by as much. Near the smallest normal numbers, it has fewer.
          EXPECT_LE(std::abs(int8[i] - values[i]),
                    1.004f * largest / 254.0f + 0.004f * largest + 1e-38f)
              << values[i];
        }
      }
    }
  }
}

TEST(WireFormat, ZerosStayZeros) {
  const std::vector<float> zeros(40, 0.0f);
  for (const WireType type : {WireType::kF16, WireType::kInt8}) {
    EXPECT_EQ(SentAndReceived(zeros, type), zeros);
  }
}

// A number that is not finite must not become one.
TEST(WireFormat, WhatIsNotFiniteStaysSo) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const WireType type : {WireType::kF16, WireType::kInt8}) {
      std::vector<float> values = RandomValues(64, 1.0f);
      values[5] = bad;
      const std::vector<float> received = SentAndReceived(values, type);
      EXPECT_FALSE(std::isfinite(received[5]));
      for (size_t i = kWireBlockValues; i < 64; ++i) EXPECT_TRUE(std::isfinite(received[i]));
    }
  }
}

}  // namespace
}  // namespace cria::ranks
