#include "llm/ngram_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using TokenIds = std::vector<int32_t>;

TokenIds Guess(NgramDrafter& drafter, const TokenIds& context, size_t count) {
  TokenIds tokens(count, -1);
  const NgramDrafter::Draft draft = drafter.Find(context, tokens);
  EXPECT_TRUE(draft.num_tokens == 0 || draft.num_tokens == count);
  tokens.resize(draft.num_tokens);
  return tokens;
}

TokenIds GuessAnew(size_t ngram_tokens, const TokenIds& context, size_t count) {
  NgramDrafter drafter(ngram_tokens, context.size());
  return Guess(drafter, context, count);
}

TEST(NgramDrafterTest, GuessesWhatFollowedTheLatestOccurrence) {
  EXPECT_THAT(GuessAnew(2, {1, 2, 3, 4, 5, 1, 2}, 3), ElementsAre(3, 4, 5));
  EXPECT_THAT(GuessAnew(2, {1, 2, 3, 9, 1, 2, 4, 9, 1, 2}, 2), ElementsAre(4, 9));
  EXPECT_THAT(GuessAnew(1, {7, 8, 9, 7}, 2), ElementsAre(8, 9));
  EXPECT_THAT(GuessAnew(2, {1, 2, 3, 4, 5, 9, 2}, 3), IsEmpty());
  EXPECT_THAT(GuessAnew(3, {1, 2, 3, 4, 5, 9, 2, 3}, 3), IsEmpty());
}

TEST(NgramDrafterTest, APeriodicTextGoesOnBehindTheEndOfTheContext) {
  EXPECT_THAT(GuessAnew(2, {1, 2, 3, 1, 2}, 8), ElementsAre(3, 1, 2, 3, 1, 2, 3, 1));
  EXPECT_THAT(GuessAnew(1, {5, 5}, 4), ElementsAre(5, 5, 5, 5));
}

TEST(NgramDrafterTest, ShortContextsAndEmptyDraftsGiveNothing) {
  EXPECT_THAT(GuessAnew(2, {1}, 4), IsEmpty());
  EXPECT_THAT(GuessAnew(2, {1, 1}, 4), IsEmpty());
  EXPECT_THAT(GuessAnew(2, {1, 1, 1}, 1), ElementsAre(1));
  EXPECT_THAT(GuessAnew(1, {1, 1, 1}, 0), IsEmpty());
}

TEST(NgramDrafterTest, ARepeatedTextGoesOnWhereItWasRepeated) {
  // "1 2" occurs elsewhere since, but the text that is repeated has it with 8 and 9 before it.
  TokenIds context = {8, 9, 1, 2, 3, 4, 1, 2, 5, 6, 8, 9};
  NgramDrafter drafter(2, 64);
  EXPECT_THAT(Guess(drafter, context, 2), ElementsAre(1, 2));
  context.insert(context.end(), {1, 2});
  EXPECT_THAT(Guess(drafter, context, 2), ElementsAre(3, 4));
  NgramDrafter other(2, 64);
  EXPECT_THAT(Guess(other, context, 2), ElementsAre(5, 6));
}

TEST(NgramDrafterTest, CountsWhatWasTheSameBefore) {
  TokenIds context;
  for (int32_t i = 0; i < 50; ++i) context.push_back(i);
  TokenIds draft(1);
  for (size_t count = 1; count <= 40; ++count) {
    NgramDrafter drafter(1, 128);
    TokenIds repeated = context;
    repeated.insert(repeated.end(), context.begin() + 5,
                    context.begin() + 5 + static_cast<int>(count));
    EXPECT_EQ(drafter.Find(repeated, draft).match_tokens, std::min<size_t>(count, 32)) << count;
  }
}

TEST(NgramDrafterTest, AContextThatChangedIsReadAgainAndNeverMisquoted) {
  NgramDrafter drafter(2, 64);
  EXPECT_THAT(Guess(drafter, {1, 2, 3, 4, 5, 6, 1, 2}, 1), ElementsAre(3));
  // Without being told, it finds nothing in what is not there any more.
  EXPECT_THAT(Guess(drafter, {7, 7, 7, 4, 1, 2}, 1), IsEmpty());
  drafter.Forget();
  EXPECT_THAT(Guess(drafter, {7, 8, 9, 4, 7, 8}, 2), ElementsAre(9, 4));
}

TEST(NgramDrafterTest, TheTableIsAsPlannedAndHoldsTwiceTheContext) {
  EXPECT_EQ(NgramDrafter::MemoryBytes(2048), 4096u * sizeof(uint32_t));
  EXPECT_EQ(NgramDrafter::MemoryBytes(2049), 8192u * sizeof(uint32_t));
  EXPECT_GE(NgramDrafter::MemoryBytes(0), sizeof(uint32_t));
}

// Where the last n-gram of the context occurred before, with the most equal tokens before it.
size_t LongestMatch(std::span<const int32_t> context, size_t ngram_tokens) {
  size_t longest = 0;
  for (size_t source = 1; source < context.size(); ++source) {
    size_t match = 0;
    while (match < std::min<size_t>(source, NgramDrafter::kMaxMatchTokens) &&
           context[source - 1 - match] == context[context.size() - 1 - match]) {
      ++match;
    }
    longest = std::max(longest, match);
  }
  return longest >= ngram_tokens ? longest : 0;
}

// Random texts that repeat parts of themselves, against a search of the whole context.
TEST(NgramDrafterTest, FindsWhatASearchFindsExceptForCollisions) {
  std::mt19937 random(3);
  size_t num_possible = 0;
  size_t num_found = 0;
  for (size_t ngram_tokens = 1; ngram_tokens <= 4; ++ngram_tokens) {
    NgramDrafter drafter(ngram_tokens, 600);
    TokenIds context;
    while (context.size() < 600) {
      if (context.size() > 20 && random() % 12 == 0) {
        const size_t begin = random() % (context.size() - 10);
        for (size_t i = 0; i < 10; ++i) context.push_back(context[begin + i]);
      } else {
        context.push_back(static_cast<int32_t>(random() % 50));
      }
      TokenIds draft(3);
      const NgramDrafter::Draft found = drafter.Find(context, draft);
      const size_t longest = LongestMatch(context, ngram_tokens);
      num_possible += longest > 0 ? 1 : 0;
      num_found += found.num_tokens > 0 ? 1 : 0;
      ASSERT_LE(found.match_tokens, longest);
      if (found.num_tokens == 0) continue;
      ASSERT_GE(found.match_tokens, ngram_tokens);
      // The draft is what follows some occurrence of the n-gram.
      TokenIds quoted(context.end() - static_cast<int>(ngram_tokens), context.end());
      quoted.push_back(draft[0]);
      EXPECT_NE(std::ranges::search(context, quoted).begin(), context.end());
    }
  }
  EXPECT_GT(num_found, num_possible * 8 / 10);
}

}  // namespace
}  // namespace cria
