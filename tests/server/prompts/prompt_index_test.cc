#include "server/prompts/prompt_index.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria::server {
namespace {

using Tokens = std::vector<int32_t>;

Tokens Counting(size_t count, int32_t first = 0) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<int32_t>(i);
  return tokens;
}

class PromptIndexTest : public testing::Test {
 protected:
  static void Add(PromptIndex& index, const Tokens& tokens, uint64_t bytes = 100) {
    index.Add(PromptIndex::NameOf(tokens), tokens, bytes, /*is_ready=*/true);
  }

  PromptIndex index_{{.bytes = 1000, .tokens = 4000, .texts = 4}, /*needs_whole=*/false};
};

TEST_F(PromptIndexTest, FindsTextsAndBeginningsOfThem) {
  EXPECT_EQ(index_.Find(Counting(500)).num_usable, 0u);
  Add(index_, Counting(300));
  Add(index_, Counting(300, 1));
  EXPECT_EQ(index_.Find(Counting(500)).num_usable, 300u);
  EXPECT_EQ(index_.Find(Counting(500)).name, PromptIndex::NameOf(Counting(300)));
  EXPECT_EQ(index_.Find(Counting(300)).num_usable, 300u);
  EXPECT_EQ(index_.Find(Counting(299)).num_usable, 299u);
  EXPECT_EQ(index_.Find(Counting(299)).num_tokens, 300u);
  EXPECT_EQ(index_.Find(Counting(299, 2)).num_usable, 0u);
}

TEST_F(PromptIndexTest, WhereWholeTextsAreNeededPartsAreOfNoUse) {
  PromptIndex index({.bytes = 1000, .tokens = 4000, .texts = 4}, /*needs_whole=*/true);
  Add(index, Counting(300));
  EXPECT_EQ(index.Find(Counting(299)).num_usable, 0u);
  EXPECT_EQ(index.Find(Counting(301)).num_usable, 300u);
  EXPECT_TRUE(index.Wants(Counting(299)));
  Add(index, Counting(600));
  EXPECT_EQ(index.NextCovered(PromptIndex::NameOf(Counting(600))), std::nullopt);
}

TEST_F(PromptIndexTest, WantsWhatSparesMuch) {
  EXPECT_FALSE(index_.Wants(Counting(255)));
  EXPECT_TRUE(index_.Wants(Counting(256)));
  EXPECT_FALSE(index_.Wants(Counting(4001)));
  index_.Add(PromptIndex::NameOf(Counting(1000)), Counting(1000), 100, /*is_ready=*/false);
  EXPECT_FALSE(index_.Wants(Counting(1000)));
  EXPECT_FALSE(index_.Wants(Counting(900)));
  // A quarter must be new.
  EXPECT_FALSE(index_.Wants(Counting(1332)));
  EXPECT_TRUE(index_.Wants(Counting(1334)));
  const Tokens first = Counting(100, 5000);
  Add(index_, first);
  Tokens longer = first;
  longer.resize(355);
  EXPECT_FALSE(index_.Wants(longer));
  longer.resize(356);
  EXPECT_TRUE(index_.Wants(longer));
}

TEST_F(PromptIndexTest, WhatIsBeingWrittenIsNotFound) {
  index_.Add(PromptIndex::NameOf(Counting(300)), Counting(300), 100, /*is_ready=*/false);
  EXPECT_EQ(index_.Find(Counting(300)).num_usable, 0u);
  EXPECT_EQ(index_.NextToRemove(4000, 0), std::nullopt);
  index_.SetReady(PromptIndex::NameOf(Counting(300)));
  EXPECT_EQ(index_.Find(Counting(300)).num_usable, 300u);
}

TEST_F(PromptIndexTest, TheLeastRecentlyUsedGoesForEachBound) {
  const Tokens a = Counting(1000), b = Counting(1000, 1), c = Counting(1000, 2);
  for (const Tokens& text : {a, b, c}) Add(index_, text, 300);
  EXPECT_EQ(index_.NextToRemove(1000, 100), std::nullopt);
  index_.Use(PromptIndex::NameOf(a));
  EXPECT_EQ(index_.NextToRemove(1001, 100), PromptIndex::NameOf(b));
  EXPECT_EQ(index_.NextToRemove(1000, 101), PromptIndex::NameOf(b));
  Add(index_, Counting(10, 3), 10);
  EXPECT_EQ(index_.NextToRemove(1, 1), PromptIndex::NameOf(b));
  index_.Remove(PromptIndex::NameOf(b));
  EXPECT_EQ(index_.bytes(), 610u);
  EXPECT_EQ(index_.NextToRemove(1000, 390), std::nullopt);
  // The others are found where they are now.
  EXPECT_EQ(index_.Find(a).num_usable, 1000u);
  EXPECT_EQ(index_.Find(c).num_usable, 1000u);
  EXPECT_EQ(index_.Find(b).num_usable, 0u);
}

TEST_F(PromptIndexTest, ALongerTextCoversItsBeginnings) {
  Add(index_, Counting(300));
  Add(index_, Counting(300, 1));
  Add(index_, Counting(600));
  EXPECT_EQ(index_.NextCovered(PromptIndex::NameOf(Counting(600))),
            PromptIndex::NameOf(Counting(300)));
  index_.Remove(PromptIndex::NameOf(Counting(300)));
  EXPECT_EQ(index_.NextCovered(PromptIndex::NameOf(Counting(600))), std::nullopt);
  EXPECT_TRUE(index_.Contains(PromptIndex::NameOf(Counting(300, 1))));
}

}  // namespace
}  // namespace cria::server
