#include "converter/quantize/minimum_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "converter/quantize/quantize_blocks.h"
#include "core/numeric.h"

namespace cria {
namespace {

const BlockFormat& FormatOf(Scheme scheme) { return *FindBlockFormat(scheme); }

// The naive reference computes in double by the definition.
double SquaredError(const std::vector<float>& values, double scale, double minimum,
                    CodeRange range) {
  double sum = 0.0;
  for (const double value : values) {
    const double code =
        std::clamp(std::nearbyint((value + minimum) / scale), double{range.min}, double{range.max});
    const double error = value - (scale * code - minimum);
    sum += error * error;
  }
  return sum;
}

double SquaredError(const std::vector<float>& values, const ScaleFit& fit, CodeRange range) {
  return SquaredError(values, fit.scale, fit.minimum, range);
}

// Tries ends of the range of codes around the smallest and the largest value.
double BruteForceError(const std::vector<float>& values, CodeRange range) {
  constexpr int kSteps = 60;
  const auto [smallest, largest] = std::ranges::minmax(values);
  const double distance = double{largest} - smallest;
  double best = std::numeric_limits<double>::infinity();
  for (int low = 0; low < kSteps; ++low) {
    for (int high = 0; high < kSteps; ++high) {
      const double first = smallest + distance * (0.01 * low - 0.1);
      const double last = largest - distance * (0.01 * high - 0.1);
      if (last <= first) continue;
      const double scale = (last - first) / range.max;
      best = std::min(best, SquaredError(values, scale, -first, range));
    }
  }
  return best;
}

std::vector<float> Values(size_t size, unsigned seed, float offset = 0.0f) {
  std::mt19937 generator(seed);
  std::student_t_distribution<float> tailed(4.0f);
  std::vector<float> values(size);
  for (float& value : values) value = 0.02f * tailed(generator) + offset;
  return values;
}

constexpr Scheme kSchemes[] = {Scheme::kW2G64, Scheme::kW3G64, Scheme::kW4G64, Scheme::kW5G64,
                               Scheme::kW6G64};

TEST(MinimumSearchTest, ReportsTheErrorOfWhatIsStored) {
  for (const Scheme scheme : kSchemes) {
    const ScaleRule rule = BlockRule(FormatOf(scheme));
    for (const size_t size : {1, 5, 8, 33, 64}) {
      const std::vector<float> values = Values(size, 3);
      const ScaleFit fit = SearchScaleAndMinimum(values, rule);
      EXPECT_EQ(fit.scale, Bf16ToFloat(FloatToBf16(fit.scale)));
      EXPECT_EQ(fit.minimum, Bf16ToFloat(FloatToBf16(fit.minimum)));
      const double expected = SquaredError(values, fit, rule.range);
      EXPECT_NEAR(fit.squared_error, expected, 1e-3 * expected + 1e-12) << size;
    }
  }
}

TEST(MinimumSearchTest, IsNearTheBest) {
  for (const Scheme scheme : kSchemes) {
    const ScaleRule rule = BlockRule(FormatOf(scheme));
    double found = 0.0;
    double best = 0.0;
    double of_ends = 0.0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      // Values around zero, and some that are all positive.
      const std::vector<float> values = Values(64, seed, seed % 4 == 0 ? 0.1f : 0.0f);
      const auto [smallest, largest] = std::ranges::minmax(values);
      found += SearchScaleAndMinimum(values, rule).squared_error;
      best += BruteForceError(values, rule.range);
      of_ends += SquaredError(values, (double{largest} - smallest) / rule.range.max, -smallest,
                              rule.range);
    }
    EXPECT_LT(found, 1.15 * best) << SchemeName(scheme);
    EXPECT_LT(found, of_ends) << SchemeName(scheme);
  }
}

TEST(MinimumSearchTest, EqualValuesAreTheirMinimum) {
  const ScaleRule rule = BlockRule(FormatOf(Scheme::kW4G64));
  const ScaleFit zeros = SearchScaleAndMinimum(std::vector<float>(64), rule);
  EXPECT_EQ(zeros.scale, 1.0f);
  EXPECT_EQ(zeros.minimum, 0.0f);
  EXPECT_EQ(zeros.squared_error, 0.0);
  const ScaleFit halves = SearchScaleAndMinimum(std::vector<float>(64, -0.5f), rule);
  EXPECT_EQ(halves.minimum, 0.5f);
  EXPECT_EQ(halves.squared_error, 0.0);
}

TEST(MinimumSearchTest, ScalesAreNormalForAnyMagnitude) {
  const ScaleRule rule = BlockRule(FormatOf(Scheme::kW4G64));
  for (const float magnitude : {1e-38f, 1e-30f, 1e-10f, 1e10f, 1e30f, 3e38f}) {
    std::vector<float> values = {-magnitude, magnitude, 0.25f * magnitude, 0.0f};
    const ScaleFit fit = SearchScaleAndMinimum(values, rule);
    EXPECT_TRUE(std::isnormal(fit.scale) && fit.scale > 0.0f) << magnitude;
    EXPECT_TRUE(std::isfinite(fit.minimum)) << magnitude;
    if (magnitude > 1e-34f) {
      EXPECT_LT(std::sqrt(SquaredError(values, fit, rule.range)), 0.1 * double{magnitude});
    }
  }
}

}  // namespace
}  // namespace cria
