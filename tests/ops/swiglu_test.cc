#include "ops/swiglu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

TEST(SwiGluTest, MatchesReferenceAtEverySize) {
  for (const size_t size : kTrickySizes) {
    const std::vector<float> gate = RandomFloats(size, 1, 4.0f);
    const std::vector<float> up = RandomFloats(size, 2);
    std::vector<float> output(size);
    SwiGlu(gate.data(), up.data(), size, output.data());
    for (size_t i = 0; i < size; ++i) {
      const double expected = reference::Silu(gate[i]) * up[i];
      ASSERT_NEAR(output[i], expected, 1e-6 * std::abs(expected) + 1e-30)
          << "size " << size << ", element " << i;
    }
  }
}

TEST(ClampedSwiGluTest, MatchesReferenceAtEverySize) {
  constexpr SwiGluClamp kClamp = {.alpha = 1.702f, .limit = 2.5f};
  for (const size_t size : kTrickySizes) {
    std::vector<float> gate = RandomFloats(size, 1, 4.0f);
    const std::vector<float> up = RandomFloats(size, 2, 4.0f);
    std::vector<float> output(size);
    ClampedSwiGlu(gate.data(), up.data(), kClamp, size, output.data());
    for (size_t i = 0; i < size; ++i) {
      const double g = std::min<double>(gate[i], 2.5);
      const double u = std::clamp<double>(up[i], -2.5, 2.5);
      const double expected = (u + 1.0) * g / (1.0 + std::exp(-double{1.702f} * g));
      ASSERT_NEAR(output[i], expected, 1e-6 * std::abs(expected) + 1e-7)
          << "size " << size << ", element " << i;
    }
    ClampedSwiGlu(gate.data(), up.data(), kClamp, size, gate.data());
    EXPECT_EQ(gate, output) << "size " << size;
  }
}

TEST(ClampedSwiGluTest, ExtremesAreClamped) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const std::vector<float> gate = {-kHuge, kHuge, kHuge, -1000.0f};
  const std::vector<float> up = {1.0f, kHuge, -kHuge, 3.0f};
  std::vector<float> output(4);
  ClampedSwiGlu(gate.data(), up.data(), {.alpha = 2.0f, .limit = 7.0f}, 4, output.data());
  EXPECT_NEAR(output[0], 0.0f, 1e-30);
  EXPECT_NEAR(output[1], 8.0f * 7.0f / (1.0f + std::exp(-14.0f)), 1e-4);
  EXPECT_NEAR(output[2], -6.0f * 7.0f / (1.0f + std::exp(-14.0f)), 1e-4);
  EXPECT_NEAR(output[3], 0.0f, 1e-30);
}

TEST(SwiGluTest, WorksInPlaceOfTheGate) {
  for (const size_t size : kTrickySizes) {
    std::vector<float> gate = RandomFloats(size, 3);
    const std::vector<float> up = RandomFloats(size, 4);
    std::vector<float> expected(size);
    SwiGlu(gate.data(), up.data(), size, expected.data());
    SwiGlu(gate.data(), up.data(), size, gate.data());
    EXPECT_EQ(gate, expected) << "size " << size;
  }
}

// exp has a relative error of its own everywhere; silu shows it over the whole range of floats.
TEST(SwiGluTest, IsAccurateOverTheWholeRange) {
  std::vector<float> gate;
  for (float x = -87.0f; x < 87.0f; x += 0.0137f) gate.push_back(x);
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> output(gate.size());
  SwiGlu(gate.data(), up.data(), gate.size(), output.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double expected = reference::Silu(gate[i]);
    ASSERT_NEAR(output[i], expected, 4e-7 * std::abs(expected)) << "at " << gate[i];
  }
}

TEST(SwiGluTest, ExtremesTendToTheirLimits) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const std::vector<float> gate = {-kHuge, -1000, -88.5f, 0, 88.5f, 1000, kHuge, NAN};
  const std::vector<float> up(8, 1.0f);
  std::vector<float> output(8);
  SwiGlu(gate.data(), up.data(), 8, output.data());
  const std::vector<float> expected = {0, 0, 0, 0, 88.5f, 1000, kHuge};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(output[i], expected[i], 1e-30) << i;
  EXPECT_TRUE(std::isnan(output[7]));
}

}  // namespace
}  // namespace cria::ops
