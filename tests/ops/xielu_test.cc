#include "ops/xielu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

// The first numbers of the class, and others.
constexpr XieluNumbers kNumbers[] = {{0.8f, 0.8f, 0.5f, -1e-6f}, {2.5f, 1.25f, 0.25f, -0.5f}};

TEST(XieluTest, MatchesReferenceAtEverySize) {
  for (const XieluNumbers& numbers : kNumbers) {
    for (const size_t size : kTrickySizes) {
      const std::vector<float> input = RandomFloats(size, 1, 2.0f);
      std::vector<float> output(size);
      Xielu(input.data(), numbers, size, output.data());
      for (size_t i = 0; i < size; ++i) {
        const double x = input[i];
        const double largest = std::max({1.0, std::abs(x), x * x});
        ASSERT_NEAR(output[i], reference::Xielu(x, numbers), 1e-6 * largest)
            << "size " << size << ", element " << i;
      }
    }
  }
}

TEST(XieluTest, WorksInPlace) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values = RandomFloats(size, 2);
    std::vector<float> expected(size);
    Xielu(values.data(), kNumbers[0], size, expected.data());
    Xielu(values.data(), kNumbers[0], size, values.data());
    EXPECT_EQ(values, expected);
  }
}

TEST(XieluTest, FarFromZeroItIsAParabolaAndALine) {
  const std::vector<float> input = {-1000, -100, 100, 1000, 0, NAN};
  std::vector<float> output(input.size());
  Xielu(input.data(), {2, 1, 0.5f, -1e-6f}, input.size(), output.data());
  const std::vector<float> expected = {499, 49, 20050, 2000500};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(output[i], expected[i]) << i;
  EXPECT_NEAR(output[4], -1e-6f, 1e-7f);
  EXPECT_TRUE(std::isnan(output[5]));
}

}  // namespace
}  // namespace cria::ops
