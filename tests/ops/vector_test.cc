#include "ops/vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/numeric.h"
#include "ops/random_floats.h"

namespace cria::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(AddTest, AddsAtEverySize) {
  for (const size_t size : kTrickySizes) {
    const std::vector<float> addend = RandomFloats(size, 1);
    const std::vector<float> before = RandomFloats(size, 2);
    std::vector<float> accumulator = before;
    Add(addend.data(), size, accumulator.data());
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(accumulator[i], before[i] + addend[i]);
  }
}

TEST(ArgMaxTest, FindsTheLargestAtEveryPlace) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values = RandomFloats(size, 3);
    for (size_t i = 0; i < size; i += size < 100 ? 1 : 13) {
      const float before = values[i];
      values[i] = 50.0f;
      ASSERT_EQ(ArgMax(values.data(), size), i) << "size " << size;
      values[i] = before;
    }
  }
}

TEST(ArgMaxTest, TakesTheFirstOfEquals) {
  for (const size_t size : kTrickySizes) {
    EXPECT_EQ(ArgMax(std::vector<float>(size, -2.0f).data(), size), 0u);
    if (size < 3) continue;
    std::vector<float> values(size, -2.0f);
    values[size / 2] = values[size - 1] = -1.0f;
    EXPECT_EQ(ArgMax(values.data(), size), size / 2) << "size " << size;
  }
}

TEST(ArgMaxTest, NeverTakesNaN) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values(size, NAN);
    EXPECT_EQ(ArgMax(values.data(), size), 0u);
    values[size - 1] = -kInfinity;
    EXPECT_EQ(ArgMax(values.data(), size), size - 1) << "size " << size;
    values[size / 3] = 1.0f;
    EXPECT_EQ(ArgMax(values.data(), size), size / 3) << "size " << size;
  }
}

double NaiveSumOfExps(const std::vector<float>& values, float largest) {
  double sum = 0.0;
  for (const float value : values) sum += std::exp(double{value} - double{largest});
  return sum;
}

TEST(SumOfExpsTest, IsTheSumAtEverySize) {
  std::vector<size_t> sizes(std::begin(kTrickySizes), std::end(kTrickySizes));
  // Around the blocks that are added as floats, and a real vocabulary.
  for (const size_t size : {1023u, 1024u, 1025u, 2049u, 128'256u}) sizes.push_back(size);
  for (const size_t size : sizes) {
    for (const float deviation : {0.0f, 1.0f, 10.0f}) {
      const std::vector<float> values = RandomFloats(size, 4, deviation);
      const float largest = *std::ranges::max_element(values);
      const double expected = NaiveSumOfExps(values, largest);
      ASSERT_NEAR(SumOfExps(values.data(), size, largest), expected, 1e-6 * expected)
          << "size " << size << ", deviation " << deviation;
    }
  }
}

TEST(SumOfExpsTest, SmallTermsAreNotLostBesideALargeOne) {
  std::vector<float> values(300'000, -12.0f);
  values[7] = 0.0f;
  const double expected = NaiveSumOfExps(values, 0.0f);
  EXPECT_NEAR(SumOfExps(values.data(), values.size(), 0.0f), expected, 1e-5 * expected);
}

TEST(SumOfExpsTest, NothingOverflowsAndInfinitiesCountAsNothing) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values(size, -kInfinity);
    values[size - 1] = 3e38f;
    EXPECT_EQ(SumOfExps(values.data(), size, 3e38f), 1.0) << "size " << size;
    values[size / 2] = -3e38f;
    values[size - 1] = 3e38f;
    EXPECT_EQ(SumOfExps(values.data(), size, 3e38f), 1.0) << "size " << size;
  }
}

TEST(SumOfExpsTest, NaNIsNotLost) {
  for (const size_t size : kTrickySizes) {
    for (size_t i = 0; i < size; i += size < 100 ? 1 : 13) {
      std::vector<float> values(size, -1.0f);
      values[i] = NAN;
      ASSERT_TRUE(std::isnan(SumOfExps(values.data(), size, -1.0f))) << i << " of " << size;
    }
  }
}

TEST(F16Test, ValuesAreRoundedToTheNearest) {
  const std::vector<float> values = {
      0.0f, -0.0f, 1.0f, -1.5f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, 65504.0f, 0x1p-24f, -13.37f};
  std::vector<uint16_t> stored(values.size());
  ToF16(values.data(), values.size(), stored.data());
  EXPECT_EQ(stored, (std::vector<uint16_t>{0x0000, 0x8000, 0x3c00, 0xbe00, 0x3c00, 0x3c02, 0x7bff,
                                           0x0001, 0xcaaf}));
  std::vector<float> read(values.size());
  FromF16(stored.data(), stored.size(), read.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(read[i], values[i], std::abs(values[i]) * 0x1p-11f) << i;
  }
}

TEST(DequantizeTest, Qc8wScalesEveryByte) {
  for (const size_t size : kTrickySizes) {
    std::vector<int8_t> row(size);
    for (size_t i = 0; i < size; ++i) row[i] = static_cast<int8_t>(i * 37 % 256 - 128);
    std::vector<float> output(size);
    DequantizeQc8w(row.data(), 0.37f, size, output.data());
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(output[i], 0.37f * row[i]) << "size " << size;
  }
}

TEST(DequantizeTest, Qb4wTakesTheLowNibbleFirstAndAScalePerBlock) {
  for (const size_t size : {2u, 30u, 32u, 34u, 64u, 96u, 130u, 256u, 576u}) {
    for (const size_t block_size : {32u, 64u, 128u, 256u}) {
      std::vector<uint8_t> row(size / 2);
      for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint8_t>(i * 73 + 5);
      std::vector<uint16_t> scales((size + block_size - 1) / block_size);
      for (size_t i = 0; i < scales.size(); ++i) {
        scales[i] = FloatToBf16(0.01f * static_cast<float>(i + 1));
      }
      std::vector<float> output(size);
      DequantizeQb4w(row.data(), scales.data(), block_size, size, output.data());
      for (size_t i = 0; i < size; ++i) {
        const int nibble = i % 2 == 0 ? row[i / 2] % 16 : row[i / 2] / 16;
        const float scale = Bf16ToFloat(scales[i / block_size]);
        ASSERT_EQ(output[i], scale * static_cast<float>(nibble - 8))
            << "size " << size << ", block " << block_size << ", element " << i;
      }
    }
  }
}

TEST(VectorTest, MultipliesBySigmoidsAtEverySize) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> gates = RandomFloats(size, 1, 4.0f);
    gates[size / 2] = -200.0f;  // Whose exponential is infinite.
    const std::vector<float> before = RandomFloats(size, 2);
    std::vector<float> values = before;
    MultiplyBySigmoid(gates.data(), size, values.data());
    for (size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(values[i], before[i] / (1.0 + std::exp(-double{gates[i]})), 1e-6) << size;
    }
  }
}

}  // namespace
}  // namespace cria::ops
