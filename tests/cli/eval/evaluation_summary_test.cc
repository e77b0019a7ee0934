#include "cli/eval/evaluation_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/statistics.h"

namespace cria::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Percentiles, AreValuesOfTheSample) {
  std::vector<double> values;
  for (int i = 1; i <= 10; ++i) values.push_back(i);
  EXPECT_EQ(Percentile(values, 0.5), 5.0);
  EXPECT_EQ(Percentile(values, 0.51), 6.0);
  EXPECT_EQ(Percentile(values, 0.9), 9.0);
  EXPECT_EQ(Percentile(values, 0.0), 1.0);
  EXPECT_EQ(Percentile(values, 1.0), 10.0);
  EXPECT_EQ(Percentile({}, 0.5), 0.0);
}

std::vector<TokenPrediction> FourPredictions() {
  return {{1, 1.0f, 0.5f, 0.1f, 1, 1},
          {2, 2.0f, 2.5f, 0.3f, 0, 1},
          {3, 3.0f, 2.5f, 0.2f, 1, 1},
          {4, 4.0f, 3.5f, 0.8f, 0, 0}};
}

TEST(TextSummary, HasMeansAndTheirErrors) {
  const TextSummary summary = SummarizeText(FourPredictions(), true);
  EXPECT_EQ(summary.num_predictions, 4u);
  EXPECT_DOUBLE_EQ(summary.negative_log_likelihood.mean, 2.5);
  const double error = std::sqrt(5.0 / 3.0) / 2.0;
  EXPECT_DOUBLE_EQ(summary.negative_log_likelihood.standard_error, error);
  EXPECT_DOUBLE_EQ(summary.perplexity.mean, std::exp(2.5));
  EXPECT_DOUBLE_EQ(summary.perplexity.standard_error, std::exp(2.5) * error);
  const BaseSummary& base = *summary.base;
  EXPECT_DOUBLE_EQ(base.negative_log_likelihood.mean, 2.25);
  EXPECT_DOUBLE_EQ(base.difference.mean, 0.25);
  EXPECT_DOUBLE_EQ(base.difference.standard_error, 0.25);
  EXPECT_NEAR(base.divergence.mean, 0.35, 1e-7);
  EXPECT_NEAR(base.percentiles[0], 0.2, 1e-7);
  EXPECT_NEAR(base.percentiles[4], 0.8, 1e-7);
  EXPECT_NEAR(base.largest_divergence, 0.8, 1e-7);
  EXPECT_DOUBLE_EQ(base.top1_agreement.mean, 0.5);
  EXPECT_DOUBLE_EQ(base.top5_agreement.mean, 0.75);
}

TEST(TextSummary, IsPrintedWithABaseOnlyIfThereIsOne) {
  const TextSummary with = SummarizeText(FourPredictions(), true);
  const TextSummary without = SummarizeText(FourPredictions(), false);
  EXPECT_THAT(SummaryText(with), HasSubstr("KL divergence from the base: 0.35000 ± 0.15546 nats"));
  EXPECT_THAT(SummaryText(without), Not(HasSubstr("base")));
  const auto json = SummaryJson(with);
  for (const char* key : {"mean_kl", "kl_standard_error", "top1_agreement", "nll_difference"}) {
    EXPECT_TRUE(json.contains(key)) << key;
    EXPECT_FALSE(SummaryJson(without).contains(key)) << key;
  }
  EXPECT_TRUE(json["kl_percentiles"].contains("99.9"));
}

}  // namespace
}  // namespace cria::cli
