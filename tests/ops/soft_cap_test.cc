#include "ops/soft_cap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

TEST(SoftCapTest, MatchesReferenceAtEverySize) {
  for (const float cap : {0.5f, 30.0f, 50.0f}) {
    for (const size_t size : kTrickySizes) {
      const std::vector<float> before = RandomFloats(size, 1, 40.0f);
      std::vector<float> values = before;
      SoftCap(cap, size, values.data());
      for (size_t i = 0; i < size; ++i) {
        const double expected = reference::SoftCapped(before[i], cap);
        ASSERT_NEAR(values[i], expected, 6e-7 * std::abs(expected))
            << "cap " << cap << ", size " << size << ", " << before[i];
      }
    }
  }
}

TEST(SoftCapTest, IsAccurateFromTheSmallestToTheLargest) {
  std::vector<float> before;
  for (float x = 1e-6f; x < 1e6f; x *= 1.001f) {
    before.push_back(x);
    before.push_back(-x);
  }
  std::vector<float> values = before;
  SoftCap(30.0f, values.size(), values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = reference::SoftCapped(before[i], 30.0);
    ASSERT_NEAR(values[i], expected, 6e-7 * std::abs(expected)) << "at " << before[i];
  }
}

TEST(SoftCapTest, ExtremesBecomeTheCap) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0, kHuge, -kHuge, kInfinity, -kInfinity, NAN};
  SoftCap(2.0f, values.size(), values.data());
  EXPECT_EQ(std::vector<float>(values.begin(), values.end() - 1),
            (std::vector<float>{0, 2, -2, 2, -2}));
  EXPECT_TRUE(std::isnan(values.back()));
}

// Logits are divided among threads anywhere.
TEST(SoftCapTest, AValueDoesNotDependOnItsPlace) {
  const std::vector<float> before = RandomFloats(131, 2, 20.0f);
  std::vector<float> together = before;
  SoftCap(30.0f, together.size(), together.data());
  for (size_t i = 0; i < before.size(); ++i) {
    float alone = before[i];
    SoftCap(30.0f, 1, &alone);
    EXPECT_EQ(alone, together[i]) << i;
  }
}

}  // namespace
}  // namespace cria::ops
