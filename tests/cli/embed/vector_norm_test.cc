#include "cli/embed/vector_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace cria::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

std::vector<float> Normalized(int64_t norm, std::vector<float> vector) {
  NormalizeBy(norm, vector);
  return vector;
}

TEST(NormalizeBy, EachNormIsOne) {
  EXPECT_THAT(Normalized(-1, {3.0f, -4.0f}), ElementsAre(3.0f, -4.0f));
  EXPECT_THAT(Normalized(0, {3.0f, -4.0f}), ElementsAre(24570.0f, -32760.0f));
  EXPECT_THAT(Normalized(1, {3.0f, -5.0f}), ElementsAre(FloatEq(0.375f), FloatEq(-0.625f)));
  EXPECT_THAT(Normalized(2, {3.0f, -4.0f}), ElementsAre(FloatEq(0.6f), FloatEq(-0.8f)));
  const double cubic = std::cbrt(27.0 + 64.0);
  EXPECT_THAT(Normalized(3, {3.0f, -4.0f}), ElementsAre(FloatEq(static_cast<float>(3.0 / cubic)),
                                                        FloatEq(static_cast<float>(-4.0 / cubic))));
}

TEST(NormalizeBy, ZerosAndLargeNumbersStayFinite) {
  for (const int64_t norm : {-1, 0, 1, 2, 7, 1000}) {
    EXPECT_THAT(Normalized(norm, {0.0f, 0.0f}), Each(0.0f)) << norm;
    const float large = std::numeric_limits<float>::max();
    const float tiny = std::numeric_limits<float>::denorm_min();
    for (const float value : Normalized(norm, {large, -large, tiny})) {
      EXPECT_TRUE(std::isfinite(value)) << norm;
    }
    EXPECT_GT(Normalized(norm, {tiny, tiny})[0], 0.0f) << norm;
  }
}

TEST(CosineSimilarity, IsThatOfTheAngle) {
  const std::vector<float> right = {2.0f, 0.0f};
  EXPECT_DOUBLE_EQ(CosineSimilarity(right, std::vector{5.0f, 0.0f}), 1.0);
  EXPECT_DOUBLE_EQ(CosineSimilarity(right, std::vector{0.0f, 3.0f}), 0.0);
  EXPECT_DOUBLE_EQ(CosineSimilarity(right, std::vector{-1.0f, 0.0f}), -1.0);
  EXPECT_NEAR(CosineSimilarity(right, std::vector{1.0f, 1.0f}), std::sqrt(0.5), 1e-12);
  EXPECT_EQ(CosineSimilarity(right, std::vector{0.0f, 0.0f}), 0.0);
}

}  // namespace
}  // namespace cria::cli
