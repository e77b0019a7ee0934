#include "cli/convert/step_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria::cli {
namespace {

using Step = ConvertStep;

StepCosts Costs(std::initializer_list<std::pair<Step, double>> steps) {
  StepCosts costs = {};
  for (const auto& [step, cost] : steps) costs[static_cast<size_t>(step)] = cost;
  return costs;
}

double Percent(const StepProgress::Whole& whole) {
  return 100.0 * static_cast<double>(whole.done) / static_cast<double>(whole.total);
}

double PercentSkipped(const StepProgress::Whole& whole) {
  return 100.0 * static_cast<double>(whole.skipped) / static_cast<double>(whole.total);
}

TEST(StepProgressTest, StepsHaveTheirSharesOfTheWhole) {
  StepProgress progress(
      Costs({{Step::kCalibrating, 60}, {Step::kWriting, 20}, {Step::kVerifying, 20}}));
  const auto first = progress.Update({"a", 0, 10, Step::kCalibrating});
  EXPECT_EQ(first.item, "step 1 of 3, a");
  EXPECT_EQ(Percent(first), 0.0);
  EXPECT_NEAR(Percent(progress.Update({"b", 5, 10, Step::kCalibrating})), 30.0, 1e-6);
  const auto second = progress.Update({"c", 0, 1000, Step::kWriting});
  EXPECT_EQ(second.item, "step 2 of 3, c");
  EXPECT_NEAR(Percent(second), 60.0, 1e-6);
  // The rest of a step is not skipped: it took time.
  EXPECT_EQ(second.skipped, 0u);
  EXPECT_NEAR(Percent(progress.Update({"d", 500, 1000, Step::kVerifying})), 90.0, 1e-6);
  EXPECT_NEAR(Percent(progress.Update({"d", 1000, 1000, Step::kVerifying})), 100.0, 1e-6);
}

TEST(StepProgressTest, WhatTakesNoTimeIsSkipped) {
  StepProgress progress(
      Costs({{Step::kRotating, 10}, {Step::kCalibrating, 70}, {Step::kWriting, 20}}));
  // There is nothing to rotate, and an earlier run has done half of the layers.
  const auto first = progress.Update({"a", 5, 10, Step::kCalibrating});
  EXPECT_NEAR(Percent(first), 45.0, 1e-6);
  EXPECT_NEAR(PercentSkipped(first), 45.0, 1e-6);
  EXPECT_EQ(progress.Update({"a", 6, 10, Step::kCalibrating}).skipped, 0u);
}

TEST(StepProgressTest, NeverGoesBack) {
  StepProgress progress(Costs({{Step::kChoosing, 30}, {Step::kWriting, 70}}));
  uint64_t last = 0;
  for (const ConvertProgress& report : {ConvertProgress{"", 5, 10, Step::kChoosing},
                                        {"", 3, 10, Step::kChoosing},
                                        {"", 12, 10, Step::kChoosing},
                                        {"", 0, 10, Step::kWriting},
                                        {"", 9, 10, Step::kChoosing},
                                        {"", 0, 0, Step::kMeasuring},
                                        {"", 10, 10, Step::kWriting}}) {
    const auto whole = progress.Update(report);
    EXPECT_GE(whole.done, last);
    EXPECT_LE(whole.done, whole.total);
    last = whole.done;
  }
}

TEST(StepProgressTest, OneStepHasNoNumber) {
  StepProgress progress(Costs({{Step::kWriting, 1}}));
  EXPECT_EQ(progress.Update({"a", 0, 10}).item, "a");
}

}  // namespace
}  // namespace cria::cli
