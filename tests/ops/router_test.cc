#include "ops/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace cria::ops {
namespace {

std::vector<float> NormalFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(RouterTest, ScoresAreDotProductsWhateverTheOtherRows) {
  for (const size_t inputs : {1, 7, 64, 100, 257}) {
    constexpr size_t kRows = 7;
    constexpr size_t kOutputs = 5;
    const size_t stride = inputs + 3;
    const std::vector<float> rows = NormalFloats(kRows * stride, 1);
    const std::vector<float> weights = NormalFloats(kOutputs * inputs, 2);
    std::vector<float> scores(kRows * kOutputs);
    RouterScores({rows.data(), stride, kRows}, weights.data(), kOutputs, inputs, scores.data(),
                 kOutputs);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t o = 0; o < kOutputs; ++o) {
        double sum = 0.0;
        for (size_t i = 0; i < inputs; ++i) {
          sum += double{rows[r * stride + i]} * weights[o * inputs + i];
        }
        EXPECT_NEAR(scores[r * kOutputs + o], sum, 1e-4) << inputs << " inputs, row " << r;
        float alone = 0.0f;
        RouterScores({rows.data() + r * stride, stride, 1}, weights.data() + o * inputs, 1, inputs,
                     &alone, 1);
        EXPECT_EQ(alone, scores[r * kOutputs + o]) << inputs << " inputs, row " << r;
      }
    }
  }
}

TEST(RouterTest, ChoosesTheLargestScoresAsASortDoes) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<float> scores = NormalFloats(40, seed);
    for (float& score : scores) score = std::round(score * 4.0f) / 4.0f;  // There are ties.
    std::vector<uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return scores[i]; });
    for (const bool normalize : {false, true}) {
      std::vector<uint32_t> experts(6);
      std::vector<float> weights(6);
      ChooseExperts(scores, {.normalize = normalize}, experts, weights);
      double sum = 0.0;
      for (size_t i = 0; i < (normalize ? experts.size() : scores.size()); ++i) {
        sum += std::exp(double{scores[order[i]]});
      }
      for (size_t i = 0; i < experts.size(); ++i) {
        EXPECT_EQ(experts[i], order[i]) << "seed " << seed;
        EXPECT_NEAR(weights[i], std::exp(double{scores[order[i]]}) / sum, 1e-6) << "seed " << seed;
      }
    }
  }
}

TEST(RouterTest, SigmoidsAreWeightsAndTheirSumsWithABiasChoose) {
  const std::vector<float> bias = NormalFloats(40, 99);
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<float> scores = NormalFloats(40, seed);
    for (const float* const added : {static_cast<const float*>(nullptr), bias.data()}) {
      std::vector<double> keys(scores.size());
      const auto sigmoid = [&](size_t i) { return 1.0 / (1.0 + std::exp(-double{scores[i]})); };
      for (size_t i = 0; i < keys.size(); ++i) {
        keys[i] = sigmoid(i) + (added == nullptr ? 0.0 : double{added[i]});
      }
      std::vector<uint32_t> order(scores.size());
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return keys[i]; });
      for (const bool normalize : {false, true}) {
        std::vector<uint32_t> experts(6);
        std::vector<float> weights(6);
        ChooseExperts(scores, {.normalize = normalize, .has_sigmoids = true, .bias = added},
                      experts, weights);
        double sum = 1e-6;
        for (size_t i = 0; i < experts.size(); ++i) sum += sigmoid(order[i]);
        for (size_t i = 0; i < experts.size(); ++i) {
          EXPECT_EQ(experts[i], order[i]) << "seed " << seed;
          EXPECT_NEAR(weights[i], sigmoid(order[i]) / (normalize ? sum : 1.0), 1e-6);
        }
      }
    }
  }
  // The sum of very small ones stays less than 1.
  std::vector<uint32_t> experts(1);
  std::vector<float> weights(1);
  ChooseExperts(std::vector<float>{-30.0f, -40.0f}, {.normalize = true, .has_sigmoids = true},
                experts, weights);
  EXPECT_EQ(experts[0], 0u);
  EXPECT_NEAR(weights[0], std::exp(-30.0) / 1e-6, 1e-9);
}

TEST(RouterTest, ChoosesValidExpertsIfAllScoresAreNan) {
  const std::vector<float> scores(8, std::numeric_limits<float>::quiet_NaN());
  std::vector<uint32_t> experts(3, 99);
  std::vector<float> weights(3);
  ChooseExperts(scores, {.normalize = true}, experts, weights);
  for (const uint32_t expert : experts) EXPECT_LT(expert, scores.size());
  for (const float weight : weights) EXPECT_TRUE(std::isnan(weight));
  ChooseExperts(scores, {.normalize = true, .has_sigmoids = true}, experts, weights);
  for (const uint32_t expert : experts) EXPECT_LT(expert, scores.size());
  for (const float weight : weights) EXPECT_TRUE(std::isnan(weight));
}

TEST(RouterTest, AddsScaledRows) {
  const std::vector<float> addend = NormalFloats(101, 3);
  std::vector<float> sum = NormalFloats(101, 4);
  const std::vector<float> before = sum;
  AddScaled(addend.data(), 0.25f, sum.size(), sum.data());
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], before[i] + 0.25f * addend[i], 1e-6);
}

TEST(RouterTest, WeighsTheSharedExpertBySigmoid) {
  const std::vector<float> row = {1.0f, 2.0f, -1.0f};
  const std::vector<float> gate = {0.5f, 0.25f, 3.0f};
  EXPECT_NEAR(SharedExpertWeight(row.data(), gate.data(), 3), 1.0 / (1.0 + std::exp(2.0)), 1e-6);
}

}  // namespace
}  // namespace cria::ops
