#include "converter/quantize/scale_search.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "converter/quantize/quantize_qb4w.h"
#include "converter/quantize/quantize_qc8w.h"
#include "core/numeric.h"
#include "core/thread_pool.h"

namespace cria {
namespace {

ScaleFit Search(const std::vector<float>& values, const ScaleRule& rule) {
  std::vector<float> scratch(ScaleSearchScratch(values.size()));
  return SearchScale(values, rule, scratch);
}

// The naive reference computes in double by the definition.
double SquaredError(const std::vector<float>& values, double scale, CodeRange range) {
  double sum = 0.0;
  for (const double value : values) {
    const double code =
        std::min(std::max(std::nearbyint(value / scale), double{range.min}), double{range.max});
    sum += (value - scale * code) * (value - scale * code);
  }
  return sum;
}

double LargestMagnitude(const std::vector<float>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

double AbsmaxError(const std::vector<float>& values, const ScaleRule& rule) {
  auto scale = static_cast<float>(LargestMagnitude(values) / rule.range.max);
  if (rule.type == ScaleType::kBf16) scale = Bf16ToFloat(FloatToBf16(scale));
  return SquaredError(values, scale, rule.range);
}

// Tries every bf16 scale from half of the usual scale to twice that scale.
double BruteForceBf16Error(const std::vector<float>& values, CodeRange range) {
  const double largest = LargestMagnitude(values);
  double best = std::numeric_limits<double>::infinity();
  float scale = Bf16ToFloat(FloatToBf16(static_cast<float>(largest / (2.0 * range.max))));
  while (scale < 2.0 * largest / range.max) {
    best = std::min(best, SquaredError(values, scale, range));
    scale = std::bit_cast<float>(std::bit_cast<uint32_t>(scale) + 0x10000u);
  }
  return best;
}

double BruteForceF32Error(const std::vector<float>& values, CodeRange range) {
  const double largest = LargestMagnitude(values);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= 1000; ++i) {
    const double scale = largest / range.max * (0.5 + 0.001 * i);
    best = std::min(best, SquaredError(values, scale, range));
  }
  return best;
}

// Rows like those of weights: bell-shaped, with heavy tails, few values, one outlier, one sign.
class ValueMaker {
 public:
  static constexpr int kNumKinds = 5;

  std::vector<float> Make(int kind, size_t size) {
    std::vector<float> values(size);
    for (float& value : values) value = 0.02f * One(kind);
    if (kind == 3) values[size / 2] = -1.0f;
    return values;
  }

 private:
  float One(int kind) {
    if (kind == 1) return tailed_(generator_);
    const float value = normal_(generator_);
    if (kind == 2) return std::round(value * 2.0f);
    if (kind == 4) return std::fabs(value);
    return value;
  }

  std::mt19937 generator_{1};
  std::normal_distribution<float> normal_;
  std::student_t_distribution<float> tailed_{3.0f};
};

TEST(ScaleSearchTest, ReportsTheErrorOfItsScale) {
  ValueMaker maker;
  for (int kind = 0; kind < ValueMaker::kNumKinds; ++kind) {
    for (const ScaleRule& rule : {kQb4wRule, kQc8wRule}) {
      const auto values = maker.Make(kind, 64);
      const ScaleFit fit = Search(values, rule);
      const double expected = SquaredError(values, fit.scale, rule.range);
      EXPECT_NEAR(fit.squared_error, expected, 1e-4 * expected) << kind;
    }
  }
}

TEST(ScaleSearchTest, IsNeverWorseThanAbsmax) {
  ValueMaker maker;
  for (int kind = 0; kind < ValueMaker::kNumKinds; ++kind) {
    for (const size_t size : {1, 2, 7, 32, 172, 256}) {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const auto values = maker.Make(kind, size);
        if (LargestMagnitude(values) == 0.0) continue;
        for (const ScaleRule& rule : {kQb4wRule, kQc8wRule}) {
          const double error = SquaredError(values, Search(values, rule).scale, rule.range);
          // The tolerance is for float instead of double sums, and for products that rounding keeps
          // from being zero.
          const double rounding = 1e-13 * static_cast<double>(size) * LargestMagnitude(values) *
                                  LargestMagnitude(values);
          EXPECT_LE(error, 1.00001 * AbsmaxError(values, rule) + rounding) << kind << " " << size;
        }
      }
    }
  }
}

TEST(ScaleSearchTest, Int4IsAsGoodAsTryingEveryBf16) {
  ValueMaker maker;
  for (int kind = 0; kind < ValueMaker::kNumKinds; ++kind) {
    for (const size_t size : {32, 128}) {
      double found = 0.0;
      double best = 0.0;
      double absmax = 0.0;
      for (int repeat = 0; repeat < 200; ++repeat) {
        const auto values = maker.Make(kind, size);
        found += SquaredError(values, Search(values, kQb4wRule).scale, kQb4wRule.range);
        best += BruteForceBf16Error(values, kQb4wRule.range);
        absmax += AbsmaxError(values, kQb4wRule);
      }
      EXPECT_LE(found, 1.005 * best) << kind << " " << size;
      if (kind == 0) {
        EXPECT_LE(found, 0.85 * absmax);
      }
    }
  }
}

TEST(ScaleSearchTest, Int8IsNearlyAsGoodAsAFineGrid) {
  ValueMaker maker;
  for (const int kind : {0, 1}) {
    double found = 0.0;
    double best = 0.0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto values = maker.Make(kind, 2048);
      found += SquaredError(values, Search(values, kQc8wRule).scale, kQc8wRule.range);
      best += BruteForceF32Error(values, kQc8wRule.range);
    }
    EXPECT_LE(found, 1.03 * best) << kind;
  }
}

TEST(ScaleSearchTest, ScalesArePositiveNormalAndOfTheirType) {
  ValueMaker maker;
  for (const float magnitude : {1e-45f, 1e-38f, 1e-36f, 1e-34f, 1e-20f, 1.0f, 1e20f, 1e37f}) {
    for (const ScaleRule& rule : {kQb4wRule, kQc8wRule}) {
      auto values = maker.Make(0, 32);
      for (float& value : values) value *= magnitude;
      const ScaleFit fit = Search(values, rule);
      EXPECT_TRUE(std::isnormal(fit.scale) && fit.scale > 0.0f) << magnitude;
      EXPECT_TRUE(std::isfinite(fit.squared_error)) << magnitude;
      if (rule.type == ScaleType::kBf16) {
        EXPECT_EQ(fit.scale, Bf16ToFloat(FloatToBf16(fit.scale)));
      }
    }
  }
  const std::vector<float> extreme = {std::numeric_limits<float>::max(),
                                      -std::numeric_limits<float>::max()};
  EXPECT_TRUE(std::isnormal(Search(extreme, kQb4wRule).scale));
}

TEST(ScaleSearchTest, ScalingByAPowerOfTwoChangesNothingElse) {
  ValueMaker maker;
  const auto values = maker.Make(0, 64);
  for (const int exponent : {-90, -30, 30, 90}) {
    auto scaled = values;
    for (float& value : scaled) value = std::ldexp(value, exponent);
    for (const ScaleRule& rule : {kQb4wRule, kQc8wRule}) {
      EXPECT_EQ(Search(scaled, rule).scale, std::ldexp(Search(values, rule).scale, exponent));
    }
  }
}

TEST(ScaleSearchTest, ZerosHaveScaleOne) {
  const ScaleFit fit = Search(std::vector<float>(32), kQb4wRule);
  EXPECT_EQ(fit.scale, 1.0f);
  EXPECT_EQ(fit.squared_error, 0.0);
}

TEST(ScaleSearchTest, RoundsToNearestEvenAsTheStandardLibraryDoes) {
  for (float value = -130.0f; value <= 130.0f; value += 0.125f) {
    EXPECT_EQ(RoundToInteger(value), std::nearbyint(value)) << value;
  }
}

// Measures while denormals are flushed to zero, as in the converter.
template <typename Function>
void OnAPoolThread(Function function) {
  const auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool);
  pool->ParallelFor(1, [&](size_t) { function(); });
}

TEST(ScaleSearchTest, FlushedDenormalsChangeNoScale) {
  ValueMaker maker;
  // Magnitudes from values whose scales are barely normal to the largest floats.
  for (const int exponent : {-116, -110, -60, 0, 60, 120, 126, 127}) {
    auto values = maker.Make(0, 64);
    const auto largest = static_cast<float>(LargestMagnitude(values));
    for (float& value : values) value = std::ldexp(value / largest, exponent);
    for (const ScaleRule& rule : {kQb4wRule, kQc8wRule}) {
      const float expected = Search(values, rule).scale;
      float scale = 0.0f;
      OnAPoolThread([&] { scale = Search(values, rule).scale; });
      EXPECT_EQ(scale, expected) << exponent;
      EXPECT_TRUE(std::isnormal(scale)) << exponent;
      EXPECT_LT(scale, std::ldexp(1.0f, exponent)) << exponent;
      EXPECT_GT(scale, std::ldexp(1.0f, exponent - 9)) << exponent;
    }
  }
}

}  // namespace
}  // namespace cria
