#include "llm/token_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "llm/constraint_fixture.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TokenChooserTest : public testing::Test {
 protected:
  // Logits for which many tokens are equally likely.
  std::vector<float> Flat() const { return std::vector<float>(kVocabSize, 1.0f); }
  int32_t Id(std::string_view text) const { return constraints_.vocabulary().Id(text); }
  static std::vector<int32_t> Ids(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

  TestConstraints constraints_;
  Sampler sampler_ = Unwrap(Sampler::Create({.top_k = 0, .temperature = 1.0f}, kVocabSize));
};

TEST_F(TokenChooserTest, ChoosesAheadWithTheRandomNumbersOfLaterChoices) {
  const GenerationOptions options;
  TokenChooser chooser(options, sampler_);
  std::vector<float> logits = Flat();
  std::vector<ChosenToken> ahead;
  for (size_t i = 0; i < 5; ++i) {
    ahead.push_back(Unwrap(chooser.Choose(logits, {}, SIZE_MAX)));
    EXPECT_TRUE(chooser.Try(ahead.back().token.id));
  }
  chooser.Rewind();
  for (const ChosenToken& chosen : ahead) {
    EXPECT_EQ(Unwrap(chooser.Choose(logits, {}, SIZE_MAX)).token.id, chosen.token.id);
    chooser.Rewind();
    chooser.Advance(chosen);
  }
}

TEST_F(TokenChooserTest, AForcedTokenTakesNoRandomNumber) {
  const auto constraint = constraints_.OfRegex("a:[0-9]");
  const Tokens stops = {kEndToken};
  const GenerationOptions options = {.stop_token_ids = stops, .constraint = constraint.get()};
  TokenChooser chooser(options, sampler_);
  std::vector<float> logits = Flat();
  EXPECT_EQ(Unwrap(chooser.FindForced(SIZE_MAX)), Id("a"));
  const ChosenToken first = Unwrap(chooser.Choose(logits, {}, SIZE_MAX));
  EXPECT_TRUE(first.is_forced);
  ASSERT_TRUE(chooser.Try(Id("a")));
  EXPECT_FALSE(chooser.Try(Id("b"))) << "the constraint does not allow it";
  ASSERT_TRUE(chooser.Try(Id(":")));
  const ChosenToken digit = Unwrap(chooser.Choose(logits, {}, SIZE_MAX));
  EXPECT_FALSE(digit.is_forced);
  chooser.Rewind();
  // It is at the beginning again, and its first choice is that of the digit.
  for (const int32_t token : {Id("a"), Id(":")}) {
    ASSERT_EQ(Unwrap(chooser.FindForced(SIZE_MAX)), token);
    chooser.Advance({{token, 0.0}, /*is_forced=*/true});
    ASSERT_TRUE(chooser.Accept(token));
  }
  EXPECT_EQ(Unwrap(chooser.FindForced(SIZE_MAX)), -1);
  EXPECT_EQ(Unwrap(chooser.Choose(logits, {}, SIZE_MAX)).token.id, digit.token.id);
  ASSERT_TRUE(chooser.Accept(digit.token.id));
  EXPECT_FALSE(Unwrap(chooser.FindForced(SIZE_MAX))) << "the text is over";
  EXPECT_EQ(Unwrap(chooser.Choose(logits, {}, SIZE_MAX)).token.id, -1);
}

TEST_F(TokenChooserTest, DraftsEndBeforeAStopTokenAndWhereTheConstraintEndsThem) {
  const Tokens stops = {kEndToken};
  const Tokens drafts = {Id("1"), Id("2"), Id("a"), kEndToken, Id("3")};
  GenerationOptions options = {.stop_token_ids = stops};
  EXPECT_THAT(Ids(TokenChooser(options, sampler_).Allowed(drafts, SIZE_MAX)),
              ElementsAre(Id("1"), Id("2"), Id("a")));
  const auto constraint = constraints_.OfRegex("[0-9]*");
  options.constraint = constraint.get();
  const TokenChooser constrained(options, sampler_);
  EXPECT_THAT(Ids(constrained.Allowed(drafts, SIZE_MAX)), ElementsAre(Id("1"), Id("2")));
  EXPECT_THAT(Ids(constrained.Allowed({}, SIZE_MAX)), IsEmpty());
}

TEST_F(TokenChooserTest, FewCandidatesAreEnoughUnlessSomethingNeedsAllLogits) {
  Sampler greedy = Unwrap(Sampler::Create({.temperature = 0.0f}, kVocabSize));
  const auto constraint = constraints_.OfRegex("[0-9]*");
  const auto count = [&](const GenerationOptions& options) {
    return TokenChooser(options, greedy).NumCandidates();
  };
  EXPECT_EQ(count({}), greedy.NumCandidates());
  EXPECT_GT(greedy.NumCandidates(), 0u);
  EXPECT_EQ(count({.constraint = constraint.get()}), 0u);
  EXPECT_EQ(count({.log_probabilities = true}), 0u);
  EXPECT_EQ(count({.on_logits = [](size_t, std::span<const float>) {}}), 0u);
}

TEST_F(TokenChooserTest, TellsThePlaceOfTheTokenAndItsProbability) {
  std::vector<size_t> positions;
  const GenerationOptions options = {
      .log_probabilities = true,
      .on_logits = [&](size_t position, std::span<const float>) { positions.push_back(position); }};
  TokenChooser chooser(options, sampler_);
  std::vector<float> logits = Flat();
  const ChosenToken chosen = Unwrap(chooser.Choose(logits, Counting(7), SIZE_MAX));
  EXPECT_NEAR(chosen.token.log_probability, -std::log(kVocabSize), 1e-5);
  EXPECT_THAT(positions, ElementsAre(7));
}

}  // namespace
}  // namespace cria
