#include "llm/measure/perplexity.h"
#include "llm/cacheless_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "decode/scripted_model.h"

namespace cria {
namespace {

constexpr size_t kVocabSize = 10;
constexpr int32_t kBos = 1;

// The scripted model gives its token a logit of 8 and all others 0.
double NatsWhenRight() { return std::log(std::exp(8.0) + (kVocabSize - 1)) - 8.0; }
double NatsWhenWrong() { return NatsWhenRight() + 8.0; }

// Sums of exponentials are added as floats, of which the largest term is exactly 1: each rounding
// changes their logarithm by at most half of this epsilon, and few of them are that large. The
// errors of these tests are up to 0.6 epsilons.
constexpr double kNatsTolerance = 2.0 * std::numeric_limits<float>::epsilon();

void Ignore(const Perplexity&) {}

// Says that every token is followed by the next larger one.
ScriptedModel CountingModel(size_t context_tokens = 16, size_t chunk_tokens = 4) {
  return {kVocabSize, context_tokens, chunk_tokens, [](std::span<const int32_t> context) {
            return (context.back() + 1) % static_cast<int32_t>(kVocabSize);
          }};
}

TEST(PerplexityTest, IsThatOfAKnownDistribution) {
  ScriptedModel model = CountingModel();
  // After BOS (1) the model expects 2: right, right, wrong, right.
  const std::vector<int32_t> tokens = {2, 3, 7, 8};
  const auto result = MeasurePerplexity(model, tokens, kBos, 16, Ignore);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->predicted_tokens, 4u);
  EXPECT_NEAR(result->mean_negative_log_likelihood, (3 * NatsWhenRight() + NatsWhenWrong()) / 4,
              kNatsTolerance);
}

TEST(PerplexityTest, EveryWindowBeginsWithBosAndIsRunInChunks) {
  ScriptedModel model = CountingModel(16, 3);
  const std::vector<int32_t> tokens = {2, 3, 4, 5, 6, 7, 8};
  std::vector<size_t> progress;
  const auto result = MeasurePerplexity(model, tokens, kBos, 6, [&](const Perplexity& so_far) {
    progress.push_back(so_far.predicted_tokens);
  });
  ASSERT_TRUE(result);
  const std::vector<ScriptedModel::ForwardCall> expected = {
      {0, {1, 2, 3}}, {3, {4, 5}}, {0, {1, 7}}};
  EXPECT_EQ(model.calls, expected);
  // All logits of a chunk are wanted and read once, in order, as one product computes them.
  EXPECT_EQ(model.rows_wanted, (std::vector<size_t>{3, 2, 2}));
  EXPECT_EQ(model.rows_read, (std::vector<size_t>{0, 1, 2, 0, 1, 0, 1}));
  EXPECT_EQ(progress, (std::vector<size_t>{5, 7}));
  EXPECT_EQ(result->predicted_tokens, 7u);
  // Only 7, which opens the second window, comes unexpected.
  EXPECT_NEAR(result->mean_negative_log_likelihood, (6 * NatsWhenRight() + NatsWhenWrong()) / 7,
              kNatsTolerance);
}

TEST(PerplexityTest, WithoutBosTheFirstTokenIsOnlyRead) {
  ScriptedModel model = CountingModel();
  const std::vector<int32_t> tokens = {2, 3, 4, 6, 7};
  const auto result = MeasurePerplexity(model, tokens, -1, 3, Ignore);
  ASSERT_TRUE(result);
  const std::vector<ScriptedModel::ForwardCall> expected = {{0, {2, 3}}, {0, {4, 6}}};
  EXPECT_EQ(model.calls, expected);
  EXPECT_EQ(result->predicted_tokens, 4u);
  EXPECT_NEAR(result->mean_negative_log_likelihood, (3 * NatsWhenRight() + NatsWhenWrong()) / 4,
              kNatsTolerance);
}

TEST(PerplexityTest, AWindowOfTwoPredictsEachTokenFromBosAlone) {
  ScriptedModel model = CountingModel();
  const std::vector<int32_t> tokens = {2, 2, 3};
  const auto result = MeasurePerplexity(model, tokens, kBos, 2, Ignore);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->mean_negative_log_likelihood, (2 * NatsWhenRight() + NatsWhenWrong()) / 3,
              kNatsTolerance);
}

// Gives the same large logits everywhere, which overflow unless their maximum is taken off.
class LargeLogitsModel final : public CachelessModel {
 public:
  LargeLogitsModel() : CachelessModel(8) {}
  size_t vocab_size() const override { return logits_.size(); }
  Result<std::span<float>> Logits(size_t) override { return std::span(logits_); }

 private:
  std::vector<float> logits_ = {30000.0f, 30000.0f, 29999.0f, -30000.0f};
};

TEST(PerplexityTest, LargeLogitsDoNotOverflow) {
  LargeLogitsModel model;
  const auto result = MeasurePerplexity(model, std::vector<int32_t>{0, 2}, 0, 8, Ignore);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->mean_negative_log_likelihood, std::log(2 + std::exp(-1.0)) + 0.5,
              kNatsTolerance);
}

TEST(PerplexityTest, WrongUseIsAnError) {
  ScriptedModel model = CountingModel();
  const std::vector<int32_t> tokens = {2, 3};
  const auto expect_code = [&](std::vector<int32_t> text, int32_t bos, size_t window,
                               ErrorCode code) {
    const auto result = MeasurePerplexity(model, text, bos, window, Ignore);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code) << result.error().message();
  };
  expect_code({}, kBos, 8, ErrorCode::kUsage);
  expect_code(tokens, kBos, 0, ErrorCode::kUsage);
  expect_code(tokens, kBos, 1, ErrorCode::kUsage);
  expect_code(tokens, kBos, 17, ErrorCode::kUsage);
  expect_code({2, 10}, kBos, 8, ErrorCode::kOutOfRange);
  expect_code({-2, 3}, kBos, 8, ErrorCode::kOutOfRange);
  expect_code(tokens, 10, 8, ErrorCode::kOutOfRange);
  EXPECT_TRUE(model.calls.empty()) << "nothing is run before the arguments are known to be good";
  EXPECT_TRUE(MeasurePerplexity(model, tokens, kBos, 16, Ignore));
}

TEST(PerplexityTest, TheModelsErrorComesThrough) {
  ScriptedModel model = CountingModel();
  model.fail_at_call = 1;
  const std::vector<int32_t> tokens(20, 2);
  const auto result = MeasurePerplexity(model, tokens, kBos, 16, Ignore);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace cria
