#include "core/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cria {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Values of binary16 from its definition.
double F16Value(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool IsNan16(uint16_t bits) { return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0; }

TEST(NumericTest, EveryF16IsReadAsDefined) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = F16ToFloat(bits);
    if (IsNan16(bits)) {
      ASSERT_TRUE(std::isnan(value));
    } else if ((bits & 0x7fff) == 0x7c00) {
      ASSERT_EQ(value, bits & 0x8000 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(value, F16Value(bits)) << i;
    }
  }
}

TEST(NumericTest, Bf16RoundsToNearestEven) {
  EXPECT_EQ(Bf16ToFloat(0x3f80), 1.0f);
  EXPECT_EQ(FloatToBf16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBf16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(FloatToBf16(1.0f + 0x1.1p-8f), 0x3f81);
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBf16(-kInfinity), 0xff80);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(NAN))));
}

}  // namespace
}  // namespace cria
