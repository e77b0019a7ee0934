#include "ops/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

constexpr size_t kSizes[] = {1, 2, 3, 4, 6, 8, 16, 24, 32, 40, 64, 80, 128, 576, 896, 1024};

TEST(HadamardTest, IsTheReference) {
  for (const size_t size : kSizes) {
    std::vector<float> row = RandomFloats(size, 1);
    const std::vector<double> expected = reference::HadamardTransform(row);
    HadamardTransform(row.data(), size);
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(row[i], expected[i], 1e-5) << i << " of " << size;
  }
}

TEST(HadamardTest, IsItsOwnInverse) {
  for (const size_t size : kSizes) {
    const std::vector<float> row = RandomFloats(size, 2);
    std::vector<float> twice = row;
    HadamardTransform(twice.data(), size);
    HadamardTransform(twice.data(), size);
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(twice[i], row[i], 2e-6) << i << " of " << size;
  }
}

TEST(HadamardTest, EveryColumnIsTransformed) {
  for (const size_t columns : {2, 3, 8, 33}) {
    constexpr size_t kSize = 24;
    const std::vector<float> values = RandomFloats(kSize * columns, 3);
    std::vector<float> transformed = values;
    HadamardTransform(transformed.data(), kSize, columns);
    for (size_t column = 0; column < columns; ++column) {
      std::vector<float> alone(kSize);
      for (size_t i = 0; i < kSize; ++i) alone[i] = values[i * columns + column];
      HadamardTransform(alone.data(), kSize);
      for (size_t i = 0; i < kSize; ++i) {
        ASSERT_EQ(transformed[i * columns + column], alone[i]) << i << " of column " << column;
      }
    }
  }
}

// Sums are in the same order, whatever the size of a vector is.
TEST(HadamardTest, EveryInstructionSetGivesTheSameBits) {
  std::vector<float> row(64);
  for (size_t i = 0; i < row.size(); ++i) row[i] = std::ldexp(1.0f, static_cast<int>(i % 30));
  std::vector<float> expected = row;
  for (size_t half = 1; half < row.size(); half *= 2) {
    std::vector<float> next(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_second = (i & half) != 0;
      next[i] = is_second ? expected[i - half] - expected[i] : expected[i] + expected[i + half];
    }
    expected = next;
  }
  for (float& value : expected) value *= 0.125f;
  HadamardTransform(row.data(), row.size());
  EXPECT_EQ(row, expected);
}

}  // namespace
}  // namespace cria::ops
