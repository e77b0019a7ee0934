#include "llm/measure/logit_comparison.h"
#include "llm/cacheless_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "decode/scripted_model.h"

namespace cria {
namespace {

constexpr size_t kVocabulary = 5;

// Predicts what follows the last token by counting on by `step`.
ScriptedModel Counting(int step, size_t context_tokens = 64, size_t chunk_tokens = 64) {
  return ScriptedModel(kVocabulary, context_tokens, chunk_tokens,
                       [step](std::span<const int32_t> context) {
                         return (context.back() + step) % static_cast<int32_t>(kVocabulary);
                       });
}

TEST(LogitComparison, OfTheSameModelIsNothing) {
  ScriptedModel reference = Counting(1), model = Counting(1);
  LogitComparison comparison;
  ASSERT_TRUE(AddComparison(reference, model, std::vector<int32_t>{0, 3, 1}, comparison));
  ASSERT_TRUE(AddComparison(reference, model, std::vector<int32_t>{2, 2}, comparison));
  EXPECT_EQ(comparison.num_positions, 5u);
  EXPECT_EQ(comparison.same_top(), 1.0);
  EXPECT_EQ(comparison.largest_difference, 0.0);
  EXPECT_NEAR(comparison.mean_divergence(), 0.0, 1e-12);
}

TEST(LogitComparison, IsTheDefinitionOfKullbackAndLeibler) {
  ScriptedModel reference = Counting(1), model = Counting(2);
  LogitComparison comparison;
  ASSERT_TRUE(AddComparison(reference, model, std::vector<int32_t>{0, 1, 2, 3}, comparison));
  // One token has the logit 8, the others 0: two probabilities change places.
  const double sum = std::exp(8.0) + kVocabulary - 1;
  const double likely = std::exp(8.0) / sum, unlikely = 1.0 / sum;
  const double divergence =
      likely * std::log(likely / unlikely) + unlikely * std::log(unlikely / likely);
  // The logarithms of the sums of exponentials have an error of about an epsilon of floats, by
  // which the probabilities are wrong, too, and these are multiplied by the difference of 8. The
  // error of this test is 2 epsilons.
  EXPECT_NEAR(comparison.mean_divergence(), divergence,
              8.0 * std::numeric_limits<float>::epsilon());
  EXPECT_EQ(comparison.largest_difference, 8.0);
  EXPECT_EQ(comparison.same_top(), 0.0);
}

TEST(LogitComparison, SpansChunksAndStopsAtTheShorterContext) {
  ScriptedModel reference = Counting(1, 7, 4), model = Counting(1, 6, 3);
  LogitComparison comparison;
  ASSERT_TRUE(
      AddComparison(reference, model, std::vector<int32_t>{0, 1, 2, 3, 4, 0, 1, 2}, comparison));
  EXPECT_EQ(comparison.num_positions, 6u);
  const std::vector<ScriptedModel::ForwardCall> calls = {{0, {0, 1, 2}}, {3, {3, 4, 0}}};
  EXPECT_EQ(reference.calls, calls);
  EXPECT_EQ(model.calls, calls);
  for (const ScriptedModel* each : {&reference, &model}) {
    EXPECT_EQ(each->rows_wanted, (std::vector<size_t>{3, 3}));
    EXPECT_EQ(each->rows_read, (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
  }
}

TEST(LogitComparison, WhatIsNotANumberDiffersWithoutBound) {
  class NanModel final : public CachelessModel {
   public:
    NanModel() : CachelessModel(64) {}
    size_t vocab_size() const override { return kVocabulary; }
    Result<std::span<float>> Logits(size_t) override { return std::span(logits_); }

   private:
    std::vector<float> logits_ =
        std::vector<float>(kVocabulary, std::numeric_limits<float>::quiet_NaN());
  } model;
  ScriptedModel reference = Counting(1);
  LogitComparison comparison;
  ASSERT_TRUE(AddComparison(reference, model, std::vector<int32_t>{0}, comparison));
  EXPECT_EQ(comparison.largest_difference, std::numeric_limits<double>::infinity());
}

TEST(LogitComparison, FailsWithTheModelsAndOverOtherVocabularies) {
  ScriptedModel reference = Counting(1), model = Counting(1);
  model.fail_at_call = 0;
  LogitComparison comparison;
  const std::vector<int32_t> tokens = {0, 1};
  EXPECT_FALSE(AddComparison(reference, model, tokens, comparison));
  ScriptedModel other(kVocabulary + 1, 64, 64, [](std::span<const int32_t>) { return 0; });
  const Status status = AddComparison(reference, other, tokens, comparison);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace cria
