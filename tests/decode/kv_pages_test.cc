#include "decode/kv_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/kv_pages_fixture.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KvPagesTest, ASingleSequenceHasAdjacentPagesInOrder) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 1, .sequence_tokens = 250});
  const SequenceId sequence = Open(pages);
  EXPECT_EQ(pages->num_free(), 4u);
  EXPECT_THAT(TableOf(pages, sequence), IsEmpty());
  for (size_t tokens = 1; tokens <= 250; ++tokens) {
    EXPECT_THAT(MovesOf(pages, pages->Extend(sequence, tokens)), IsEmpty());
    EXPECT_EQ(pages->num_tokens(sequence), tokens);
    EXPECT_EQ(pages->num_free(), 4 - (tokens + kPage - 1) / kPage);
  }
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 1, 2, 3));
  ASSERT_TRUE(pages->Truncate(sequence, 65));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 1));
  EXPECT_THAT(MovesOf(pages, pages->Extend(sequence, 250)), IsEmpty());
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 1, 2, 3));
  pages->Close(sequence);
  EXPECT_EQ(pages->num_free(), 4u);
  const SequenceId next = OpenWith(pages, 129);
  EXPECT_THAT(TableOf(pages, next), ElementsAre(0, 1, 2));
}

TEST(KvPagesTest, WhatIsNotPossibleIsRefused) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 2, .sequence_tokens = 250});
  const SequenceId a = OpenWith(pages, 100), b = Open(pages);
  ExpectRefused(pages->Open(), ErrorCode::kUsage, "for 2 sequences, which are all in use");
  ExpectRefused(pages->Extend(a, 99), ErrorCode::kOutOfRange, "of 100 tokens cannot be extended");
  ExpectRefused(pages->Extend(a, 251), ErrorCode::kOutOfRange, "251 tokens does not fit");
  ExpectRefused(pages->Extend(a, SIZE_MAX), ErrorCode::kOutOfRange, "does not fit");
  ExpectRefused(pages->Truncate(a, 101), ErrorCode::kOutOfRange,
                "has 100 tokens, which is less than 101");
  ExpectRefused(pages->Reserve(a, 251), ErrorCode::kOutOfRange, "251 tokens does not fit");
  ExpectRefused(pages->Reserve(a, SIZE_MAX, SIZE_MAX), ErrorCode::kOutOfRange, "does not fit");
  ExpectRefused(pages->Drop(a, 101, 0), ErrorCode::kOutOfRange, "cannot be dropped");
  ExpectRefused(pages->Drop(a, 1, 100), ErrorCode::kOutOfRange, "cannot be dropped");
  ExpectRefused(pages->Drop(a, 1, SIZE_MAX), ErrorCode::kOutOfRange, "cannot be dropped");
  ExpectRefused(pages->Share(a, b, 101), ErrorCode::kOutOfRange, "101 tokens of a sequence of 100");
  ExpectRefused(pages->Share(a, a, 10), ErrorCode::kUsage, "only an empty sequence");
  ExpectRefused(pages->Share(b, a, 0), ErrorCode::kUsage, "only an empty sequence");
  EXPECT_EQ(pages->num_tokens(a), 100u);
  EXPECT_THAT(TableOf(pages, a), ElementsAre(0, 1));
  EXPECT_EQ(pages->num_free(), 2u);
  pages->Close(b);
  for (const SequenceId closed : {b, SequenceId{2}, UINT32_MAX}) {
    pages->Close(closed);
    ExpectRefused(pages->Extend(closed, 0), ErrorCode::kUsage, "is not open");
    ExpectRefused(pages->Truncate(closed, 0), ErrorCode::kUsage, "is not open");
    ExpectRefused(pages->Reserve(closed, 0), ErrorCode::kUsage, "is not open");
    ExpectRefused(pages->Drop(closed, 0, 0), ErrorCode::kUsage, "is not open");
    ExpectRefused(pages->Share(closed, a, 0), ErrorCode::kUsage, "is not open");
    ExpectRefused(pages->Share(a, closed, 0), ErrorCode::kUsage, "is not open");
  }
  EXPECT_EQ(pages->num_free(), 2u);
}

TEST(KvPagesTest, ReservedPagesAreNotFreeForOthers) {
  TestKvPages pages({.num_pages = 6, .num_sequences = 2, .sequence_tokens = 6 * kPage});
  const SequenceId a = Open(pages), b = Open(pages);
  ASSERT_TRUE(pages->Reserve(a, 3 * kPage + 1));
  EXPECT_EQ(pages->num_free(), 2u);
  ExpectRefused(pages->Reserve(b, 2 * kPage + 1), ErrorCode::kOutOfMemory,
                "3 pages of 64 tokens are needed, but 2 of the KV cache's 6 are free");
  ExpectRefused(pages->Extend(b, 2 * kPage + 1), ErrorCode::kOutOfMemory, "but 2 of");
  EXPECT_EQ(pages->Reserve(b, 2 * kPage + 1).error().remedy().kind, RemedyKind::kLargerContext);
  EXPECT_EQ(pages->num_free(), 2u);
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, 2 * kPage)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 0u);
  EXPECT_THAT(MovesOf(pages, pages->Extend(a, 4 * kPage)), IsEmpty());
  // What a sequence held stays reserved for it until it asks for less.
  ASSERT_TRUE(pages->Truncate(a, 1));
  EXPECT_EQ(pages->num_free(), 0u);
  EXPECT_FALSE(pages->Extend(b, 3 * kPage));
  ASSERT_TRUE(pages->Reserve(a, 0));
  EXPECT_EQ(pages->num_free(), 3u);
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, 5 * kPage)), IsEmpty());
  EXPECT_FALSE(pages->Extend(a, kPage + 1));
  pages->Close(b);
  EXPECT_EQ(pages->num_free(), 5u);
}

TEST(KvPagesTest, WholePagesAreSharedAndTheRestIsCopied) {
  TestKvPages pages({.num_pages = 6, .num_sequences = 3, .sequence_tokens = 6 * kPage});
  const SequenceId a = OpenWith(pages, 2 * kPage + 30), b = Open(pages), c = Open(pages);
  EXPECT_THAT(
      MovesOf(pages, pages->Share(a, b, 2 * kPage + 10)),
      ElementsAre(PageMove{.source_page = 2, .target_page = 3, .position = 128, .num_rows = 10}));
  EXPECT_THAT(TableOf(pages, b), ElementsAre(0, 1, 3));
  EXPECT_THAT(MovesOf(pages, pages->Share(b, c, kPage)), IsEmpty());
  EXPECT_THAT(TableOf(pages, c), ElementsAre(0));
  EXPECT_EQ(pages->num_holders(0), 3u);
  EXPECT_EQ(pages->num_holders(1), 2u);
  EXPECT_EQ(pages->num_holders(2), 1u);
  EXPECT_EQ(pages->num_free(), 2u);
  pages->Close(a);
  EXPECT_EQ(pages->num_free(), 3u);
  EXPECT_EQ(pages->num_holders(0), 2u);
  pages->Close(b);
  EXPECT_EQ(pages->num_free(), 5u);
  pages->Close(c);
  EXPECT_EQ(pages->num_free(), 6u);
}

TEST(KvPagesTest, ASharedPageIsCopiedBeforeItIsExtended) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 2, .sequence_tokens = 4 * kPage});
  const SequenceId a = OpenWith(pages, 2 * kPage), b = Open(pages);
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 2 * kPage)), IsEmpty());
  ASSERT_TRUE(pages->Truncate(b, kPage + 7));
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, kPage + 7)), IsEmpty());
  ASSERT_TRUE(pages->Reserve(b, kPage + 8));
  EXPECT_EQ(pages->num_free(), 1u);
  EXPECT_THAT(
      MovesOf(pages, pages->Extend(b, kPage + 8)),
      ElementsAre(PageMove{.source_page = 1, .target_page = 2, .position = 64, .num_rows = 7}));
  EXPECT_THAT(TableOf(pages, a), ElementsAre(0, 1));
  EXPECT_THAT(TableOf(pages, b), ElementsAre(0, 2));
  EXPECT_EQ(pages->num_free(), 1u);
  // The copy is the sequence's own.
  ASSERT_TRUE(pages->Truncate(b, kPage + 3));
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, kPage + 9)), IsEmpty());
}

TEST(KvPagesTest, WithoutAFreePageASharedOneIsNotExtended) {
  TestKvPages pages({.num_pages = 2, .num_sequences = 2, .sequence_tokens = 2 * kPage});
  const SequenceId a = OpenWith(pages, 2 * kPage), b = Open(pages);
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 2 * kPage)), IsEmpty());
  ASSERT_TRUE(pages->Truncate(b, kPage + 7));
  ExpectRefused(pages->Extend(b, kPage + 8), ErrorCode::kOutOfMemory, "1 pages of 64");
  ExpectRefused(pages->Reserve(b, kPage + 8), ErrorCode::kOutOfMemory, "1 pages of 64");
  EXPECT_THAT(TableOf(pages, b), ElementsAre(0, 1));
  EXPECT_EQ(pages->num_tokens(b), kPage + 7);
  // After the other sequence is closed, the page is the sequence's own.
  pages->Close(a);
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, kPage + 8)), IsEmpty());
}

TEST(KvPagesTest, SharedPagesThatMayBeDroppedHaveCopiesSetAside) {
  TestKvPages pages({.num_pages = 10, .num_sequences = 3, .sequence_tokens = 10 * kPage});
  const SequenceId a = Open(pages), b = Open(pages), c = Open(pages);
  // The first two pages are kept, a third one is shared.
  ASSERT_TRUE(pages->Reserve(a, 4 * kPage, 2 * kPage + 5));
  EXPECT_THAT(MovesOf(pages, pages->Extend(a, 3 * kPage)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 6u);
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 3 * kPage)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 5u) << "a copy for the first sequence";
  ASSERT_TRUE(pages->Reserve(b, 4 * kPage, kPage));
  EXPECT_EQ(pages->num_free(), 2u) << "copies of two pages, and a new one";
  EXPECT_THAT(MovesOf(pages, pages->Share(b, c, 2 * kPage)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 2u);
  ASSERT_TRUE(pages->Reserve(c, 4 * kPage, 2 * kPage));
  EXPECT_EQ(pages->num_free(), 0u);
  // None of these needs a free page.
  EXPECT_THAT(MovesOf(pages, pages->Drop(a, 2 * kPage + 5, 20)),
              ElementsAre(PageMove{2, 3, 128, 5, 0}, PageMove{2, 3, 133, 39, 20, 0, 0, 20}));
  EXPECT_THAT(MovesOf(pages, pages->Drop(b, kPage, kPage)),
              ElementsAre(PageMove{2, 2, 64, 64, 64, 0, 0, 64}));
  EXPECT_THAT(MovesOf(pages, pages->Extend(a, 4 * kPage)), IsEmpty());
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, 4 * kPage)), IsEmpty());
  EXPECT_THAT(MovesOf(pages, pages->Extend(c, 4 * kPage)), IsEmpty());
  for (const SequenceId sequence : {a, b, c}) pages->Close(sequence);
  EXPECT_EQ(pages->num_free(), 10u);
}

TEST(KvPagesTest, KeptPagesThatAreDroppedNeedFreePages) {
  TestKvPages pages({.num_pages = 5, .num_sequences = 2, .sequence_tokens = 5 * kPage});
  const SequenceId a = OpenWith(pages, 4 * kPage), b = Open(pages);
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 4 * kPage)), IsEmpty());
  ExpectRefused(pages->Drop(b, 10, 20), ErrorCode::kOutOfMemory, "4 pages of 64");
  EXPECT_EQ(pages->num_tokens(b), 4 * kPage);
  EXPECT_EQ(TableOf(pages, b), TableOf(pages, a));
  EXPECT_EQ(pages->num_free(), 1u);
  // Only the last one of the shared pages is still needed: a copy of it.
  EXPECT_THAT(MovesOf(pages, pages->Drop(b, 0, 3 * kPage)),
              ElementsAre(PageMove{3, 4, 0, 64, 192, 0, 0, 192}));
  EXPECT_THAT(TableOf(pages, b), ElementsAre(4));
  EXPECT_THAT(TableOf(pages, a), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(pages->num_free(), 0u);
}

TEST(KvPagesTest, WholePagesThatAreDroppedAreUnlinked) {
  TestKvPages pages({.num_pages = 6, .num_sequences = 1, .sequence_tokens = 6 * kPage});
  const SequenceId sequence = OpenWith(pages, 5 * kPage + 9);
  // The rest of the first page comes from the third, and later pages stay where they are.
  EXPECT_THAT(
      MovesOf(pages, pages->Drop(sequence, 4, 2 * kPage)),
      ElementsAre(PageMove{2, 0, 4, 60, 128, 0, 0, 128}, PageMove{3, 3, 64, 64, 128, 0, 0, 128},
                  PageMove{4, 4, 128, 64, 128, 0, 0, 128}, PageMove{5, 5, 192, 9, 128, 0, 0, 128}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 3, 4, 5));
  EXPECT_THAT(
      MovesOf(pages, pages->Drop(sequence, 0, kPage)),
      ElementsAre(PageMove{3, 3, 0, 64, 64, 0, 128, 192}, PageMove{4, 4, 64, 64, 64, 0, 128, 192},
                  PageMove{5, 5, 128, 9, 64, 0, 128, 192}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(3, 4, 5));
  EXPECT_EQ(pages->num_tokens(sequence), 2 * kPage + 9);
}

TEST(KvPagesTest, OtherDropsMoveRows) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 1, .sequence_tokens = 4 * kPage});
  const SequenceId sequence = OpenWith(pages, 3 * kPage);
  // Page 1 is given back, and the rows of page 2 move on their page.
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 4, 70)),
              ElementsAre(PageMove{1, 0, 4, 54, 70, 0, 0, 70}, PageMove{2, 0, 58, 6, 70, 0, 0, 70},
                          PageMove{2, 2, 64, 58, 70, 0, 0, 70}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 2));
  EXPECT_EQ(pages->num_tokens(sequence), 3 * kPage - 70);
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 100, 22)), IsEmpty());
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 50, 0)), IsEmpty());
  EXPECT_EQ(pages->num_tokens(sequence), 100u);
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 0, 100)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 4u - 3) << "still reserved";
}

// The turns of the moves of a drop, by the position of the first row of each.
std::vector<std::pair<uint32_t, int64_t>> TurnsOf(const TestKvPages& pages, const Status& done) {
  std::vector<std::pair<uint32_t, int64_t>> turns;
  for (const PageMove& move : MovesOf(pages, done)) {
    if (move.turn() != 0) turns.emplace_back(move.position, move.turn());
  }
  return turns;
}

TEST(KvPagesTest, DropsBehindTheSameTokensTurnNoKey) {
  TestKvPages pages({.num_pages = 5, .num_sequences = 2, .sequence_tokens = 4 * kPage});
  const SequenceId sequence = OpenWith(pages, 3 * kPage), other = Open(pages);
  EXPECT_EQ(pages->shift(sequence), SequenceShift());
  for (uint32_t distance = 20; distance <= 60; distance += 20) {
    EXPECT_THAT(TurnsOf(pages, pages->Drop(sequence, 7, 20)), IsEmpty());
    EXPECT_EQ(pages->shift(sequence), (SequenceShift{.first = 7, .distance = distance}));
  }
  // Tokens that are added go on where the others are.
  ASSERT_TRUE(pages->Extend(sequence, 150));
  EXPECT_EQ(pages->shift(sequence).distance, 60u);
  ASSERT_TRUE(pages->Share(sequence, other, 8));
  EXPECT_EQ(pages->shift(other), pages->shift(sequence));
  ASSERT_TRUE(pages->Truncate(other, 7));
  EXPECT_EQ(pages->shift(other), SequenceShift());
  ASSERT_TRUE(pages->Truncate(other, 0));
  ASSERT_TRUE(pages->Share(sequence, other, 7));
  EXPECT_EQ(pages->shift(other), SequenceShift());
  pages->Close(sequence);
  EXPECT_EQ(pages->shift(Open(pages)), SequenceShift());
}

TEST(KvPagesTest, DropsBehindOtherTokensTurnKeys) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 1, .sequence_tokens = 4 * kPage});
  const SequenceId sequence = OpenWith(pages, 3 * kPage);
  ASSERT_TRUE(pages->Drop(sequence, 40, 20));
  // Behind more tokens: what follows is turned by this distance.
  EXPECT_THAT(TurnsOf(pages, pages->Drop(sequence, 70, 5)),
              ElementsAre(std::pair(70u, 5), std::pair(123u, 5), std::pair(128u, 5)));
  EXPECT_EQ(pages->shift(sequence), (SequenceShift{.first = 40, .distance = 20}));
  // Behind fewer tokens: those that were not shifted yet, and stay, take the turn of the others.
  EXPECT_THAT(TurnsOf(pages, pages->Drop(sequence, 10, 6)), ElementsAre(std::pair(10u, -20)));
  EXPECT_EQ(pages->shift(sequence), (SequenceShift{.first = 10, .distance = 26}));
  EXPECT_THAT(TurnsOf(pages, pages->Drop(sequence, 0, 30)), IsEmpty());
  EXPECT_EQ(pages->shift(sequence), (SequenceShift{.first = 0, .distance = 56}));
}

TEST(SequenceShiftTest, DistancesAreBounded) {
  SequenceShift shift = {.first = 9, .distance = SequenceShift::kMaxDistance - 10};
  EXPECT_EQ(shift.Dropped(9, 10).distance, SequenceShift::kMaxDistance);
  EXPECT_EQ(shift.Dropped(9, 11), shift);
  EXPECT_EQ(shift.Dropped(5, 11), (SequenceShift{.first = 5, .distance = shift.distance}));
}

}  // namespace
}  // namespace cria
