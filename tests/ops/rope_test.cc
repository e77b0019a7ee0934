#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "ops/random_floats.h"

namespace cria::ops {
namespace {

struct Angles {
  std::vector<double> angles;
  std::vector<float> cosines;
  std::vector<float> sines;
};

Angles AnglesAt(size_t position, size_t head_dim) {
  Angles result;
  for (size_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double angle = static_cast<double>(position) * std::pow(10000.0, exponent);
    result.angles.push_back(angle);
    result.cosines.push_back(static_cast<float>(std::cos(angle)));
    result.sines.push_back(static_cast<float>(std::sin(angle)));
  }
  return result;
}

TEST(RopeTest, IsAComplexRotationOfHalfSplitPairs) {
  for (const size_t head_dim : {2, 6, 8, 64, 80, 96, 128, 130}) {
    for (const size_t num_heads : {1, 3}) {
      const Angles at = AnglesAt(1234, head_dim);
      const std::vector<float> input = RandomFloats(num_heads * head_dim, 1);
      std::vector<float> heads = input;
      ApplyRope(heads.data(), num_heads, head_dim, head_dim, at.cosines.data(), at.sines.data());
      for (size_t h = 0; h < num_heads; ++h) {
        for (size_t i = 0; i < head_dim / 2; ++i) {
          const size_t real = h * head_dim + i;
          const size_t imaginary = real + head_dim / 2;
          const std::complex<double> turned =
              std::complex<double>(input[real], input[imaginary]) * std::polar(1.0, at.angles[i]);
          ASSERT_NEAR(heads[real], turned.real(), 1e-6) << head_dim << ' ' << h << ' ' << i;
          ASSERT_NEAR(heads[imaginary], turned.imag(), 1e-6) << head_dim << ' ' << h << ' ' << i;
        }
      }
    }
  }
}

TEST(RopeTest, APartOfEachHeadIsRotatedAsAHeadOfItsSize) {
  for (const size_t rotary_dim : {2, 6, 24, 64, 94}) {
    constexpr size_t kHeadDim = 96;
    const Angles at = AnglesAt(77, rotary_dim);
    const std::vector<float> input = RandomFloats(2 * kHeadDim, 3);
    std::vector<float> heads = input;
    ApplyRope(heads.data(), 2, kHeadDim, rotary_dim, at.cosines.data(), at.sines.data());
    for (size_t h = 0; h < 2 * kHeadDim; h += kHeadDim) {
      std::vector<float> part(&input[h], &input[h] + rotary_dim);
      ApplyRope(part.data(), 1, rotary_dim, rotary_dim, at.cosines.data(), at.sines.data());
      part.insert(part.end(), &input[h] + rotary_dim, &input[h] + kHeadDim);
      EXPECT_EQ(std::vector<float>(&heads[h], &heads[h] + kHeadDim), part) << rotary_dim;
    }
  }
}

TEST(RopeTest, PositionZeroChangesNothing) {
  const Angles at = AnglesAt(0, 20);
  const std::vector<float> input = RandomFloats(40, 2);
  std::vector<float> heads = input;
  ApplyRope(heads.data(), 2, 20, 20, at.cosines.data(), at.sines.data());
  EXPECT_EQ(heads, input);
}

}  // namespace
}  // namespace cria::ops
