#include "llm/draft_length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "llm/row_costs.h"

namespace cria {
namespace {

TEST(AcceptanceTest, BeginsWithWhatIsExpectedAndFollowsWhatHappens) {
  Acceptance acceptance(0.5);
  EXPECT_DOUBLE_EQ(acceptance.rate(), 0.5);
  for (int i = 0; i < 4; ++i) acceptance.Learn(false);
  EXPECT_NEAR(acceptance.rate(), 1.0 / 6, 1e-9);
  for (int i = 0; i < 200; ++i) acceptance.Learn(true);
  EXPECT_GT(acceptance.rate(), 0.98);
  for (int i = 0; i < 64; ++i) acceptance.Learn(false);
  EXPECT_LT(acceptance.rate(), 0.2);
}

TEST(DraftLengthTest, IsZeroWhileNothingWasMeasured) {
  EXPECT_EQ(BestDraftLength(1.0, 8, {}), 0u);
  const std::vector<double> unknown(9, 0.0);
  EXPECT_EQ(BestDraftLength(1.0, 8, {.seconds = unknown}), 0u);
}

TEST(DraftLengthTest, RowsThatCostNothingAreAlwaysDrafted) {
  const std::vector<double> flat(9, 0.04);
  EXPECT_EQ(BestDraftLength(0.1, 8, {.seconds = flat}), 8u);
  EXPECT_EQ(BestDraftLength(0.1, 3, {.seconds = flat}), 3u);
  EXPECT_EQ(BestDraftLength(0.9, 20, {.seconds = flat}), 8u);
  EXPECT_EQ(BestDraftLength(0.0, 8, {.seconds = flat}), 0u);
}

TEST(DraftLengthTest, IsTheLengthWithMostTokensPerSecond) {
  // Two rows take as long as eight, and 2.5 times as long as one: below an acceptance of about
  // 0.62, nothing pays (1 + a + … + a^7 = 2.5), and above it, the longest.
  const std::vector<double> steps = {1.0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5};
  EXPECT_EQ(BestDraftLength(0.59, 7, {.seconds = steps}), 0u);
  EXPECT_EQ(BestDraftLength(0.65, 7, {.seconds = steps}), 7u);
  // Each row costs a fifth of the first: (1 + a + … + a^n) / (1 + n / 5) is largest for n = 1 if a
  // is 0.5: 1.25, then 1.25, 1.17.
  const std::vector<double> ramp = {1.0, 1.2, 1.4, 1.6, 1.8};
  EXPECT_EQ(BestDraftLength(0.5, 4, {.seconds = ramp}), 1u);
  EXPECT_EQ(BestDraftLength(0.19, 4, {.seconds = ramp}), 0u);
  EXPECT_EQ(BestDraftLength(0.95, 4, {.seconds = ramp}), 4u);
}

TEST(DraftLengthTest, MakingDraftsCountsAndSoDoOtherSequences) {
  const std::vector<double> flat(9, 1.0);
  EXPECT_EQ(BestDraftLength(0.5, 8, {.seconds = flat, .seconds_per_draft = 0.6}), 0u);
  EXPECT_EQ(BestDraftLength(0.5, 8, {.seconds = flat, .seconds_per_draft = 0.1}), 2u);
  // Slower steps also delay the others.
  const std::vector<double> slower = {1.0, 1.3};
  EXPECT_EQ(BestDraftLength(0.5, 1, {.seconds = slower}), 1u);
  EXPECT_EQ(BestDraftLength(0.5, 1, {.seconds = slower, .other_sequences = 3}), 0u);
}

TEST(RowCostsTest, WhatIsUnknownIsExpectedToBeFast) {
  RowCosts costs;
  EXPECT_EQ(costs.Seconds(1), 0.0);
  costs.Learn(1, 0.04);
  EXPECT_DOUBLE_EQ(costs.Seconds(1), 0.04);
  EXPECT_DOUBLE_EQ(costs.Seconds(8), 0.04);
  costs.Learn(9, 0.12);
  EXPECT_DOUBLE_EQ(costs.Seconds(9), 0.12);
  EXPECT_DOUBLE_EQ(costs.Seconds(5), 0.08);
  EXPECT_DOUBLE_EQ(costs.Seconds(20), 0.12);
  EXPECT_EQ(costs.Seconds(0), 0.0);
}

TEST(RowCostsTest, MoreRowsTakeNoLessTime) {
  RowCosts costs;
  costs.Learn(1, 0.06);
  costs.Learn(2, 0.04);
  costs.Learn(4, 0.05);
  for (size_t rows = 1; rows < 10; ++rows) EXPECT_DOUBLE_EQ(costs.Seconds(rows), 0.06) << rows;
}

TEST(RowCostsTest, ManyRowsAreNotLearntAndNeverPay) {
  RowCosts costs;
  costs.Learn(1, 1.0);
  costs.Learn(RowCosts::kMaxRows + 1, 1.0);
  EXPECT_TRUE(std::isinf(costs.Seconds(RowCosts::kMaxRows + 1)));
  const std::vector<double> seconds(3, std::numeric_limits<double>::infinity());
  EXPECT_EQ(BestDraftLength(1.0, 2, {.seconds = seconds}), 0u);
}

TEST(RowCostsTest, FollowsAMachineThatBecomesSlowerForAllRows) {
  RowCosts costs;
  costs.Learn(1, 1.0);
  costs.Learn(4, 2.0);
  for (int i = 0; i < 50; ++i) costs.Learn(4, 4.0);
  EXPECT_NEAR(costs.Seconds(4), 4.0, 0.1);
  EXPECT_GT(costs.Seconds(1), 1.2);
  // An interruption is not believed at once.
  costs.Learn(4, 400.0);
  EXPECT_LT(costs.Seconds(4), 6.0);
}

TEST(RowCostsTest, WhatWasExpensiveOnceIsTriedAgain) {
  RowCosts costs;
  costs.Learn(1, 1.0);
  costs.Learn(2, 9.0);
  for (int i = 0; i < 5000; ++i) costs.Learn(1, 1.0);
  EXPECT_LT(costs.Seconds(2), 1.1);
  EXPECT_GE(costs.Seconds(2), 1.0);
}

}  // namespace
}  // namespace cria
