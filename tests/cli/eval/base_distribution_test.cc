#include "cli/eval/base_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "llm/measure/log_sum_exp.h"
#include "support/random_values.h"

namespace cria::cli {
namespace {

std::vector<float> Logits(uint64_t seed, size_t size = 40) {
  std::vector<float> logits(size);
  support::FillNormal(seed, 0, logits);
  for (float& each : logits) each *= 2.0f;
  return logits;
}

std::vector<double> Probabilities(const std::vector<float>& logits) {
  std::vector<double> values(logits.begin(), logits.end());
  double sum = 0.0;
  for (double& each : values) sum += each = std::exp(each);
  for (double& each : values) each /= sum;
  return values;
}

TokenPrediction Compare(const std::vector<float>& base, const std::vector<float>& logits) {
  TokenPrediction prediction;
  CompareWithBase({.log_probabilities = base, .log_sum = LogSumExp(base), .tokens = {}}, logits,
                  LogSumExp(logits), prediction);
  return prediction;
}

TEST(BaseDistribution, OfAllTokensGivesTheDivergenceOfTheDefinition) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<float> base = Logits(seed), logits = Logits(seed + 100);
    const std::vector<double> p = Probabilities(base), q = Probabilities(logits);
    double expected = 0.0;
    for (size_t i = 0; i < p.size(); ++i) expected += p[i] * std::log(p[i] / q[i]);
    EXPECT_NEAR(Compare(base, logits).divergence, expected, 1e-5 * expected);
  }
  EXPECT_EQ(Compare(Logits(1), Logits(1)).divergence, 0.0f);
}

TEST(BaseDistribution, ATokenThatTheBaseRulesOutCountsNothing) {
  std::vector<float> base = {0.0f, 0.0f, -INFINITY};
  EXPECT_NEAR(Compare(base, {0.0f, 0.0f, 0.0f}).divergence, std::log(1.5), 1e-6);
}

TEST(BaseDistribution, TheOtherTokensCountAsOne) {
  const std::vector<float> base = Logits(3), logits = Logits(4);
  const std::vector<double> p = Probabilities(base), q = Probabilities(logits);
  std::vector<uint32_t> order(base.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return base[a] > base[b]; });
  order.resize(7);
  std::vector<float> kept;
  double expected = 0.0, p_rest = 1.0, q_rest = 1.0;
  for (const uint32_t token : order) {
    kept.push_back(static_cast<float>(std::log(p[token])));
    expected += p[token] * std::log(p[token] / q[token]);
    p_rest -= p[token];
    q_rest -= q[token];
  }
  expected += p_rest * std::log(p_rest / q_rest);
  TokenPrediction prediction;
  CompareWithBase({.log_probabilities = kept, .tokens = order}, logits, LogSumExp(logits),
                  prediction);
  EXPECT_NEAR(prediction.divergence, expected, 1e-4 * expected);
  EXPECT_LT(prediction.divergence, Compare(base, logits).divergence);
}

TEST(BaseDistribution, AgreementIsOfTheBasesMostLikelyToken) {
  const std::vector<float> base = {0, 9, 1, 2, 3, 4, 5};
  const auto agreement = [&](const std::vector<float>& logits) {
    const TokenPrediction prediction = Compare(base, logits);
    return std::pair(prediction.is_same_top1, prediction.is_in_top5);
  };
  EXPECT_EQ(agreement({0, 5, 4, 4, 4, 4, 4}), std::pair(uint16_t{1}, uint16_t{1}));
  EXPECT_EQ(agreement({0, 5, 6, 6, 6, 6, 4}), std::pair(uint16_t{0}, uint16_t{1}));
  EXPECT_EQ(agreement({0, 5, 6, 6, 6, 6, 6}), std::pair(uint16_t{0}, uint16_t{0}));
}

}  // namespace
}  // namespace cria::cli
