#include "ops/squared_relu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

TEST(SquaredReluTest, MatchesReferenceAtEverySize) {
  for (const size_t size : kTrickySizes) {
    const std::vector<float> input = RandomFloats(size, 1, 2.0f);
    std::vector<float> output(size);
    SquaredRelu(input.data(), size, output.data());
    for (size_t i = 0; i < size; ++i) {
      ASSERT_FLOAT_EQ(output[i], static_cast<float>(reference::SquaredRelu(input[i])))
          << "size " << size << ", element " << i;
    }
  }
}

TEST(SquaredReluTest, WorksInPlace) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> values = RandomFloats(size, 2);
    std::vector<float> expected(size);
    SquaredRelu(values.data(), size, expected.data());
    SquaredRelu(values.data(), size, values.data());
    EXPECT_EQ(values, expected);
  }
}

TEST(SquaredReluTest, Extremes) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const std::vector<float> input = {-kHuge, -1, 0, 3, 1e10f, NAN};
  std::vector<float> output(input.size());
  SquaredRelu(input.data(), input.size(), output.data());
  const std::vector<float> expected = {0, 0, 0, 9, 1e20f};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(output[i], expected[i]) << i;
  EXPECT_TRUE(std::isnan(output.back()));
}

}  // namespace
}  // namespace cria::ops
