#include "converter/gguf/llama3_rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace cria {
namespace {

// transformers' formula, which uses wavelengths.
std::vector<float> Factors(size_t head_dim, double theta, double factor, double low, double high,
                           double positions) {
  std::vector<float> factors;
  for (size_t i = 0; i < head_dim; i += 2) {
    const double wavelength =
        2.0 * std::numbers::pi * std::pow(theta, double(i) / double(head_dim));
    const double smooth = (positions / wavelength - low) / (high - low);
    const double blended = 1.0 / ((1.0 - smooth) / factor + smooth);
    factors.push_back(float(wavelength < positions / high  ? 1.0
                            : wavelength > positions / low ? factor
                                                           : blended));
  }
  return factors;
}

TEST(Llama3RopeTest, FindsLlama3sOwn) {
  for (const float factor : {8.0f, 32.0f}) {
    const auto found = FindLlama3Scaling(Factors(128, 500000, factor, 1, 4, 8192), 500000);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->type, RopeScaling::Type::kLlama3);
    EXPECT_EQ(found->factor, factor);
    EXPECT_EQ(found->low_freq_factor, 1.0f);
    EXPECT_EQ(found->high_freq_factor, 4.0f);
    EXPECT_EQ(found->original_max_position_embeddings, 8192u);
  }
}

TEST(Llama3RopeTest, FindsOthersThatGiveTheSameFactors) {
  const auto factors = Factors(128, 10000, 4, 2, 6, 2048);
  const auto found = FindLlama3Scaling(factors, 10000);
  ASSERT_TRUE(found);
  // With half of all three values, the scaling is the same.
  EXPECT_EQ(found->low_freq_factor, 1.0f);
  EXPECT_EQ(found->high_freq_factor, 3.0f);
  EXPECT_NEAR(found->original_max_position_embeddings, 1024, 1);
}

TEST(Llama3RopeTest, OneBlendedFrequencyIsEnough) {
  const auto found = FindLlama3Scaling(Factors(16, 10000, 4, 1, 4, 32), 10000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->high_freq_factor, 4.0f);
  EXPECT_EQ(found->original_max_position_embeddings, 32u);
}

TEST(Llama3RopeTest, FactorsOfOneAreNoScaling) {
  const auto found = FindLlama3Scaling(std::vector<float>(32, 1.0f), 10000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->type, RopeScaling::Type::kNone);
}

TEST(Llama3RopeTest, RefusesWhatIsNotLlama3s) {
  auto factors = Factors(128, 500000, 8, 1, 4, 8192);
  factors[3] = 1.5f;
  EXPECT_FALSE(FindLlama3Scaling(factors, 500000));
  // Such as Phi's long factors.
  EXPECT_FALSE(FindLlama3Scaling(std::vector<float>{1.0f, 1.2f, 1.7f, 2.0f, 9.0f, 30.0f}, 10000));
  EXPECT_FALSE(FindLlama3Scaling(std::vector<float>{0.5f, 1.0f}, 10000));
  EXPECT_FALSE(FindLlama3Scaling({}, 10000));
  EXPECT_FALSE(FindLlama3Scaling(std::vector<float>{1.0f, INFINITY}, 10000));
}

}  // namespace
}  // namespace cria
