#include "llm/drafting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace cria {
namespace {

using testing::HasSubstr;
using TokenIds = std::vector<int32_t>;

// A batch of any size takes a second.
const std::vector<double> kFlat(17, 1.0);
// A row takes as long as the next one: no draft pays.
const std::vector<double> kSteep = {1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(DraftingTest, OptionsOutsideTheirRangesAreRefusedByName) {
  const auto message = [](const DraftOptions& options) {
    const Status status = ValidateDraftOptions(options);
    return status ? "" : status.error().message();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.ngram_tokens = 16, .max_tokens = 32, .min_tokens = 32}), "");
  EXPECT_THAT(message({.ngram_tokens = 17}), HasSubstr("ngram_tokens is 17"));
  EXPECT_THAT(message({.max_tokens = 0}), HasSubstr("longest draft is 0"));
  EXPECT_THAT(message({.max_tokens = 33}), HasSubstr("longest draft is 33"));
  EXPECT_THAT(message({.max_tokens = 4, .min_tokens = 5}), HasSubstr("shortest draft is 5"));
}

TEST(DraftingTest, DraftsAsManyAsPayAndAsManyAsAreAllowed) {
  TokenIds context = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2};
  Sampler sampler = *Sampler::Create({}, 100);
  Seat seat;
  const auto draft = [&](const DraftOptions& options, size_t max_tokens,
                         std::span<const double> seconds) {
    Drafting drafting(options, 64);
    const auto tokens = drafting.Draft({seat, context, sampler}, max_tokens, {.seconds = seconds});
    return TokenIds(tokens.begin(), tokens.end());
  };
  EXPECT_EQ(draft({.ngram_tokens = 2}, 16, kFlat), (TokenIds{3, 4, 5, 6, 7, 8, 9, 1}));
  EXPECT_EQ(draft({.ngram_tokens = 2}, 3, kFlat), (TokenIds{3, 4, 5}));
  EXPECT_EQ(draft({.ngram_tokens = 2, .max_tokens = 2}, 16, kFlat), (TokenIds{3, 4}));
  EXPECT_EQ(draft({.ngram_tokens = 2}, 0, kFlat), TokenIds{});
  EXPECT_EQ(draft({.ngram_tokens = 2}, 8, kSteep), TokenIds{});
  EXPECT_EQ(draft({.ngram_tokens = 2, .min_tokens = 4}, 8, kSteep), (TokenIds{3, 4, 5, 6}));
  EXPECT_EQ(draft({.ngram_tokens = 2, .min_tokens = 4}, 3, kFlat), TokenIds{});
  EXPECT_EQ(draft({.ngram_tokens = 3}, 8, kFlat), TokenIds{});
  EXPECT_EQ(draft({}, 8, kFlat), TokenIds{});
}

TEST(DraftingTest, LearnsFromDraftsThatWereNotRun) {
  // Two rows cost 1.6 of one: a draft of one token pays if it is right with more than 0.6.
  const std::vector<double> seconds = {1.0, 1.6};
  Drafting drafting({.ngram_tokens = 2, .max_tokens = 1}, 512);
  Sampler sampler = *Sampler::Create({}, 100);
  Seat seat;
  TokenIds context;
  size_t first_draft = 0;
  for (int32_t i = 0; i < 300; ++i) {
    context.push_back(i % 3 == 2 ? 7 : i % 3);
    const bool drafts = !drafting.Draft({seat, context, sampler}, 1, {.seconds = seconds}).empty();
    if (drafts && first_draft == 0) first_draft = context.size();
  }
  EXPECT_GT(first_draft, 5u);
  EXPECT_LT(first_draft, 30u);
  // After many that are wrong, there are none.
  size_t late_drafts = 0;
  for (int32_t i = 0; i < 150; ++i) {
    context.push_back(i % 3 == 2 ? 10 + i : i % 3);
    const bool drafts = !drafting.Draft({seat, context, sampler}, 1, {.seconds = seconds}).empty();
    if (i >= 100 && drafts) ++late_drafts;
  }
  EXPECT_EQ(late_drafts, 0u);
}

}  // namespace
}  // namespace cria
