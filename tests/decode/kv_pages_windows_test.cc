// Groups of layers with windows; kv_pages_random_test has random requests for them, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "decode/kv_pages_fixture.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Layers without a window, and layers with one of two pages. With chunks of a page, a sequence
// holds up to four pages of the latter.
KvPages::Shape TwoGroups(size_t num_sequences = 1) {
  return {.num_pages = 12 * num_sequences,
          .num_sequences = num_sequences,
          .sequence_tokens = 12 * kPage,
          .chunk_tokens = kPage,
          .windows = {0, 2 * kPage}};
}

void ExtendInChunks(TestKvPages& pages, SequenceId sequence, size_t tokens) {
  for (size_t end = pages->num_tokens(sequence); end < tokens;) {
    end = std::min(tokens, end + kPage);
    EXPECT_THAT(MovesOf(pages, pages->Extend(sequence, end)), IsEmpty());
  }
}

TEST(KvPagesWindowsTest, LayersWithTheSameWindowFormAGroup) {
  const KvPages::Shape shape = {.num_pages = 100,
                                .num_sequences = 2,
                                .sequence_tokens = 50 * kPage,
                                .chunk_tokens = 128,
                                .windows = {1000, 0, 64, 1000}};
  const auto groups = KvPages::Groups(shape);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].window_tokens, 0u);
  EXPECT_EQ(groups[0].num_pages, 100u);
  EXPECT_EQ(groups[0].sequence_pages, 50u);
  // 999 + 128 rows lie on up to 19 pages, and 63 + 128 rows on up to 4.
  EXPECT_EQ(groups[1].window_tokens, 1000u);
  EXPECT_EQ(groups[1].num_pages, 2u * 19);
  EXPECT_EQ(groups[1].sequence_pages, 19u);
  EXPECT_EQ(groups[2].window_tokens, 64u);
  EXPECT_EQ(groups[2].num_pages, 2u * 4);
  EXPECT_EQ(KvPages::GroupOf(groups, 0), 0u);
  EXPECT_EQ(KvPages::GroupOf(groups, 1000), 1u);
  EXPECT_EQ(KvPages::GroupOf(groups, 64), 2u);
}

TEST(KvPagesWindowsTest, AWindowThatSavesNoPageCountsAsNone) {
  const auto groups_with = [](size_t num_sequences, std::vector<uint32_t> windows) {
    return KvPages::Groups({.num_pages = 40,
                            .num_sequences = num_sequences,
                            .sequence_tokens = 40 * kPage,
                            .chunk_tokens = 128,
                            .windows = std::move(windows)});
  };
  for (const uint32_t window : {40u * 64, 39u * 64, 2366u, UINT32_MAX}) {
    SCOPED_TRACE(window);
    const auto groups = groups_with(1, {window});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].window_tokens, 0u);
    EXPECT_EQ(groups[0].num_pages, 40u);
    EXPECT_EQ(KvPages::GroupOf(groups, window), 0u);
    EXPECT_EQ(groups_with(1, {window, 0}).size(), 1u);
  }
  // 2,300 + 128 rows lie on up to 39 pages.
  EXPECT_EQ(groups_with(1, {2301}).front().num_pages, 39u);
  // All sequences together could hold more pages than there are without the window.
  EXPECT_EQ(groups_with(1, {1000}).front().num_pages, 19u);
  EXPECT_EQ(groups_with(2, {1000}).front().num_pages, 38u);
  EXPECT_EQ(groups_with(3, {1000}).front().window_tokens, 0u);
}

TEST(KvPagesWindowsTest, MemoryGrowsWithTheGroups) {
  KvPages::Shape shape = TwoGroups();
  const uint64_t both = KvPages::MemoryBytes(shape);
  shape.windows = {0};
  const uint64_t full = KvPages::MemoryBytes(shape);
  EXPECT_GT(both, full);
  EXPECT_LT(both, 2 * full);
  shape.windows = {0, UINT32_MAX};
  EXPECT_EQ(KvPages::MemoryBytes(shape), full);
}

TEST(KvPagesWindowsTest, PagesBeforeTheWindowAreTakenAgain) {
  TestKvPages pages(TwoGroups());
  const SequenceId sequence = Open(pages);
  ExtendInChunks(pages, sequence, 4 * kPage);
  EXPECT_THAT(TableOf(pages, sequence, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(pages->group(1).num_pages(), 4u);
  EXPECT_EQ(pages->group(1).first_row(sequence), 0u);
  ExtendInChunks(pages, sequence, 4 * kPage + 1);
  EXPECT_THAT(TableOf(pages, sequence, 1), ElementsAre(1, 2, 3, 0));
  EXPECT_EQ(pages->group(1).first_row(sequence), kPage);
  ExtendInChunks(pages, sequence, 12 * kPage);
  EXPECT_THAT(TableOf(pages, sequence, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(pages->group(1).first_row(sequence), 8 * kPage);
  // Layers without a window keep all.
  EXPECT_EQ(TableOf(pages, sequence, 0).size(), 12u);
  pages->Close(sequence);
  EXPECT_EQ(pages->group(1).num_free(), 4u);
  EXPECT_EQ(pages->num_free(), 12u);
}

TEST(KvPagesWindowsTest, WithoutReservingLayersWithWindowsNeverFail) {
  KvPages::Shape shape = TwoGroups(3);
  shape.windows = {2 * kPage};
  TestKvPages pages(shape);
  EXPECT_EQ(pages->num_pages(), 12u);
  for (int i = 0; i < 3; ++i) {
    const SequenceId sequence = Open(pages);
    ASSERT_TRUE(pages->Reserve(sequence, shape.sequence_tokens));
    ExtendInChunks(pages, sequence, shape.sequence_tokens);
  }
  EXPECT_EQ(pages->num_free(), 0u);
}

TEST(KvPagesWindowsTest, MoreThanAChunkIsRefused) {
  TestKvPages pages(TwoGroups());
  const SequenceId sequence = OpenWith(pages, 10);
  ExpectRefused(pages->Extend(sequence, 10 + kPage + 1), ErrorCode::kOutOfRange,
                "65 tokens do not fit a chunk of 64");
  EXPECT_EQ(pages->num_tokens(sequence), 10u);
  EXPECT_TRUE(pages->Extend(sequence, 10 + kPage));
}

TEST(KvPagesWindowsTest, APrefixNeedsTheRowsOfItsWindow) {
  TestKvPages pages(TwoGroups(2));
  const SequenceId a = Open(pages), b = Open(pages);
  ExtendInChunks(pages, a, 6 * kPage);
  // Rows from 2 pages on are there. The token at 255 attends to 128 and later.
  ASSERT_EQ(pages->group(1).first_row(a), 2 * kPage);
  EXPECT_EQ(pages->LongestPrefix(a, SIZE_MAX), 6 * kPage);
  EXPECT_EQ(pages->LongestPrefix(a, 255), 255u);
  EXPECT_EQ(pages->LongestPrefix(a, 254), 0u);
  EXPECT_EQ(pages->LongestPrefix(a, 0), 0u);
  EXPECT_EQ(pages->LongestPrefix(7, 0), 0u);
  ExpectRefused(pages->Truncate(a, 254), ErrorCode::kUsage, "the first 254 tokens");
  ExpectRefused(pages->Share(a, b, 254), ErrorCode::kUsage, "run the tokens again");
  EXPECT_EQ(pages->num_tokens(a), 6 * kPage);
  EXPECT_EQ(pages->num_tokens(b), 0u);
  EXPECT_EQ(pages->num_free(), 18u);
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 255)),
              ElementsAre(PageMove{3, 6, 192, 63, 0, 0}, PageMove{3, 4, 192, 63, 0, 1}));
  EXPECT_EQ(pages->group(1).first_row(b), 2 * kPage);
  ASSERT_TRUE(pages->Truncate(a, 255));
  EXPECT_THAT(TableOf(pages, a, 1), ElementsAre(2, 3));
  // An empty sequence begins anew.
  ASSERT_TRUE(pages->Truncate(a, 0));
  ExtendInChunks(pages, a, kPage);
  EXPECT_EQ(pages->group(1).first_row(a), 0u);
}

TEST(KvPagesWindowsTest, RestoredSequencesHaveTheRowsOfTheirWindow) {
  TestKvPages pages(TwoGroups());
  const SequenceId sequence = Open(pages);
  ASSERT_TRUE(pages->Restore(sequence, 500));
  EXPECT_EQ(pages->num_tokens(sequence), 500u);
  EXPECT_EQ(TableOf(pages, sequence, 0).size(), 8u);
  EXPECT_EQ(pages->group(1).first_row(sequence), 500u - 127);
  EXPECT_THAT(TableOf(pages, sequence, 1), ElementsAre(0, 1, 2));
  EXPECT_EQ(pages->LongestPrefix(sequence, 500), 500u);
  EXPECT_EQ(pages->LongestPrefix(sequence, 499), 0u);
  ExpectRefused(pages->Restore(sequence, 501), ErrorCode::kUsage, "only an empty sequence");
  ExpectRefused(pages->Restore(1, 1), ErrorCode::kUsage, "not open");
  ASSERT_TRUE(pages->Truncate(sequence, 0));
  ExpectRefused(pages->Restore(sequence, 769), ErrorCode::kOutOfRange, "does not fit");
  ASSERT_TRUE(pages->Restore(sequence, 100));
  EXPECT_EQ(pages->group(1).first_row(sequence), 0u);
}

TEST(KvPagesWindowsTest, ADropBeforeTheWindowMovesItsRows) {
  TestKvPages pages(TwoGroups());
  const SequenceId sequence = Open(pages);
  ExtendInChunks(pages, sequence, 8 * kPage);
  ASSERT_THAT(TableOf(pages, sequence, 1), ElementsAre(0, 1, 2, 3));
  ASSERT_TRUE(pages->CanDrop(sequence, 4, 2 * kPage));
  // One page is left for copies; the others stay where they are.
  const std::vector<PageMove> moves = MovesOf(pages, pages->Drop(sequence, 4, 2 * kPage));
  EXPECT_THAT(
      std::vector(moves.end() - 3, moves.end()),
      ElementsAre(PageMove{1, 1, 192, 64, 128, 1, 0, 128}, PageMove{2, 2, 256, 64, 128, 1, 0, 128},
                  PageMove{3, 3, 320, 64, 128, 1, 0, 128}));
  EXPECT_THAT(TableOf(pages, sequence, 1), ElementsAre(1, 2, 3));
  EXPECT_EQ(pages->group(1).first_row(sequence), 3 * kPage);
  EXPECT_EQ(TableOf(pages, sequence, 0).size(), 6u);
}

TEST(KvPagesWindowsTest, ADropThatNeedsRowsThatAreGoneIsRefused) {
  TestKvPages pages(TwoGroups());
  const SequenceId sequence = Open(pages);
  ExtendInChunks(pages, sequence, 8 * kPage);
  // 100 tokens would stay, which all are in the window: the first 4 among them.
  EXPECT_FALSE(pages->CanDrop(sequence, 4, 8 * kPage - 100));
  ExpectRefused(pages->Drop(sequence, 4, 8 * kPage - 100), ErrorCode::kUsage,
                "the first 4 tokens need");
  EXPECT_EQ(pages->num_tokens(sequence), 8 * kPage);
  EXPECT_TRUE(pages->CanDrop(sequence, 0, 8 * kPage - 100));
  EXPECT_TRUE(pages->CanDrop(sequence, 4, 8 * kPage - 132));
  EXPECT_FALSE(pages->CanDrop(sequence, 4, 8 * kPage - 130));
  EXPECT_TRUE(pages->CanDrop(sequence, 0, 8 * kPage));
  EXPECT_FALSE(pages->CanDrop(sequence, 1, 8 * kPage));
  EXPECT_FALSE(pages->CanDrop(1, 0, 1));
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 0, 8 * kPage - 100)).size(), testing::Gt(0u));
  EXPECT_EQ(pages->num_tokens(sequence), 100u);
}

}  // namespace
}  // namespace cria
