#include "ops/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

TEST(RmsNormTest, MatchesReferenceAtEverySize) {
  for (const size_t size : kTrickySizes) {
    const std::vector<float> input = RandomFloats(size, 1, 3.0f);
    const std::vector<float> weight = RandomFloats(size, 2);
    const std::vector<double> expected = reference::RmsNorm(input, weight, 1e-5);
    std::vector<float> output(size);
    RmsNorm(input.data(), weight.data(), size, 1e-5f, output.data());
    for (size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(output[i], expected[i], 1e-6 * (1 + std::abs(expected[i])))
          << "size " << size << ", element " << i;
    }
  }
}

TEST(RmsNormTest, WithoutWeightsTheseAreOne) {
  for (const size_t size : kTrickySizes) {
    const std::vector<float> input = RandomFloats(size, 5, 3.0f);
    const std::vector<float> ones(size, 1.0f);
    std::vector<float> expected(size);
    std::vector<float> output(size);
    RmsNorm(input.data(), ones.data(), size, 1e-6f, expected.data());
    RmsNorm(input.data(), nullptr, size, 1e-6f, output.data());
    EXPECT_EQ(output, expected) << size;
  }
}

TEST(RmsNormTest, WorksInPlace) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values = RandomFloats(size, 3);
    const std::vector<float> weight = RandomFloats(size, 4);
    std::vector<float> expected(size);
    RmsNorm(values.data(), weight.data(), size, 1e-6f, expected.data());
    RmsNorm(values.data(), weight.data(), size, 1e-6f, values.data());
    EXPECT_EQ(values, expected) << "size " << size;
  }
}

TEST(RmsNormTest, EqualValuesBecomeTheWeights) {
  const std::vector<float> input(24, -5.0f);
  const std::vector<float> weight = RandomFloats(24, 5);
  std::vector<float> output(24);
  RmsNorm(input.data(), weight.data(), 24, 0.0f, output.data());
  for (size_t i = 0; i < 24; ++i) EXPECT_FLOAT_EQ(output[i], -weight[i]);
}

TEST(RmsNormTest, EpsilonKeepsZerosZero) {
  const std::vector<float> input(10, 0.0f);
  const std::vector<float> weight(10, 2.0f);
  std::vector<float> output(10, 1.0f);
  RmsNorm(input.data(), weight.data(), 10, 1e-5f, output.data());
  EXPECT_EQ(output, input);
}

}  // namespace
}  // namespace cria::ops
