#include "decode/kv_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "decode/test_kv_pages.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kPage = kKvPageTokens;

SequenceId Open(TestKvPages& pages) { return pages->Open().value(); }

// Opens a sequence of `tokens`.
SequenceId OpenWith(TestKvPages& pages, size_t tokens) {
  const SequenceId sequence = Open(pages);
  EXPECT_TRUE(pages->Extend(sequence, tokens));
  return sequence;
}

std::vector<uint32_t> TableOf(const TestKvPages& pages, SequenceId sequence) {
  const auto table = pages->Table(sequence).pages;
  return {table.begin(), table.end()};
}

std::vector<PageMove> MovesOf(const TestKvPages& pages, const Status& done) {
  EXPECT_TRUE(done) << done.error().message();
  return {pages->moves().begin(), pages->moves().end()};
}

template <typename T>
void ExpectRefused(const Result<T>& result, ErrorCode code, const char* words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code);
  EXPECT_THAT(result.error().message(), HasSubstr(words));
}

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
  EXPECT_THAT(MovesOf(pages, pages->Share(a, b, 2 * kPage + 10)),
              ElementsAre(PageMove{.source_page = 2, .target_page = 3, .num_rows = 10}));
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
  EXPECT_THAT(MovesOf(pages, pages->Extend(b, kPage + 8)),
              ElementsAre(PageMove{.source_page = 1, .target_page = 2, .num_rows = 7}));
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
              ElementsAre(PageMove{2, 0, 3, 0, 5, 0}, PageMove{2, 25, 3, 5, 39, 20}));
  EXPECT_THAT(MovesOf(pages, pages->Drop(b, kPage, kPage)),
              ElementsAre(PageMove{2, 0, 2, 0, 64, 64}));
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
  // Of the shared pages, only the last one is still needed: a copy of it.
  EXPECT_THAT(MovesOf(pages, pages->Drop(b, 0, 3 * kPage)),
              ElementsAre(PageMove{3, 0, 4, 0, 64, 192}));
  EXPECT_THAT(TableOf(pages, b), ElementsAre(4));
  EXPECT_THAT(TableOf(pages, a), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(pages->num_free(), 0u);
}

TEST(KvPagesTest, WholePagesThatAreDroppedAreUnlinked) {
  TestKvPages pages({.num_pages = 6, .num_sequences = 1, .sequence_tokens = 6 * kPage});
  const SequenceId sequence = OpenWith(pages, 5 * kPage + 9);
  // The rest of the first page comes from the third, and later pages only turn their keys.
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 4, 2 * kPage)),
              ElementsAre(PageMove{2, 4, 0, 4, 60, 128}, PageMove{3, 0, 3, 0, 64, 128},
                          PageMove{4, 0, 4, 0, 64, 128}, PageMove{5, 0, 5, 0, 9, 128}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 3, 4, 5));
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 0, kPage)),
              ElementsAre(PageMove{3, 0, 3, 0, 64, 64}, PageMove{4, 0, 4, 0, 64, 64},
                          PageMove{5, 0, 5, 0, 9, 64}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(3, 4, 5));
  EXPECT_EQ(pages->num_tokens(sequence), 2 * kPage + 9);
}

TEST(KvPagesTest, OtherDropsMoveRows) {
  TestKvPages pages({.num_pages = 4, .num_sequences = 1, .sequence_tokens = 4 * kPage});
  const SequenceId sequence = OpenWith(pages, 3 * kPage);
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 4, 70)),
              ElementsAre(PageMove{1, 10, 0, 4, 54, 70}, PageMove{2, 0, 0, 58, 6, 70},
                          PageMove{2, 6, 1, 0, 58, 70}));
  EXPECT_THAT(TableOf(pages, sequence), ElementsAre(0, 1));
  EXPECT_EQ(pages->num_tokens(sequence), 3 * kPage - 70);
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 100, 22)), IsEmpty());
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 50, 0)), IsEmpty());
  EXPECT_EQ(pages->num_tokens(sequence), 100u);
  EXPECT_THAT(MovesOf(pages, pages->Drop(sequence, 0, 100)), IsEmpty());
  EXPECT_EQ(pages->num_free(), 4u - 3) << "still reserved";
}

// Random requests, against a model that knows nothing of pages: a list of tokens for each sequence,
// and how far each was turned.
struct Row {
  uint64_t token = 0;  // 0: there is none.
  uint64_t turned_back = 0;
  bool operator==(const Row&) const = default;
};

class RandomRequests {
 public:
  RandomRequests(const KvPages::Shape& shape, unsigned seed)
      : shape_(shape), random_(seed), pages_(shape), cache_(shape.num_pages * kPage) {}

  void Run(size_t num_steps) {
    for (size_t step = 0; step < num_steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      RunStep();
      Check();
      if (testing::Test::HasFailure()) return;
    }
    for (SequenceId i = 0; i < shape_.num_sequences; ++i) pages_->Close(i);
    EXPECT_EQ(pages_->num_free(), shape_.num_pages) << "pages are lost";
  }

  struct Counts {
    size_t done = 0;
    size_t refused = 0;
    size_t copies_of_shared = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Sequence {
    std::vector<Row> rows;
    // Extending to this many tokens cannot fail, nor can dropping tokens after `kept`.
    size_t reserved = 0;
    size_t kept = SIZE_MAX;
  };

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  // A number up to `largest`, often at a page's end.
  size_t UpTo(size_t largest) {
    const size_t any = Below(largest + 1);
    return Below(2) == 0 ? any / kPage * kPage : any;
  }
  SequenceId AnySequence() { return static_cast<SequenceId>(Below(shape_.num_sequences)); }

  void RunStep() {
    const SequenceId id = AnySequence();
    const auto found = sequences_.find(id);
    if (found == sequences_.end()) return OpenOne();
    Sequence& sequence = found->second;
    switch (Below(12)) {
      case 0:
        pages_->Close(id);
        sequences_.erase(id);
        return;
      case 1:
        return ReserveFor(id, sequence);
      case 2:
      case 3:
        return TruncateTo(id, sequence, UpTo(sequence.rows.size()));
      case 4:
      case 5:
        return ShareWith(id, sequence);
      case 6:
      case 7:
      case 8:
        return DropFrom(id, sequence);
      default:
        return ExtendTo(id, sequence);
    }
  }

  void OpenOne() {
    const auto opened = pages_->Open();
    ASSERT_TRUE(opened);
    EXPECT_TRUE(sequences_.try_emplace(*opened).second);
  }

  void ReserveFor(SequenceId id, Sequence& sequence) {
    const size_t tokens = UpTo(shape_.sequence_tokens);
    const size_t kept = Below(3) == 0 ? SIZE_MAX : UpTo(tokens);
    if (Expect(pages_->Reserve(id, tokens, kept), false)) {
      sequence.reserved = std::max(tokens, sequence.rows.size());
      sequence.kept = kept == SIZE_MAX ? kept : kept / kPage * kPage;
    }
  }

  void TruncateTo(SequenceId id, Sequence& sequence, size_t tokens) {
    ForgetPromises(id, sequence, tokens);
    ASSERT_TRUE(pages_->Truncate(id, tokens));
    sequence.rows.resize(tokens);
  }

  void ExtendTo(SequenceId id, Sequence& sequence) {
    const size_t size = sequence.rows.size();
    const size_t room = shape_.sequence_tokens - size;
    const size_t tokens = size + std::min(room, Below(3) == 0 ? UpTo(room) : Below(100));
    const Status done = pages_->Extend(id, tokens);
    if (!Expect(done, tokens <= sequence.reserved)) return;
    CarryOut(id);
    for (size_t i = size; i < tokens; ++i) {
      sequence.rows.push_back({.token = ++last_token_});
      const size_t row = pages_->Table(id).Row(i);
      EXPECT_EQ(pages_->num_holders(static_cast<uint32_t>(row / kPage)), 1u);
      cache_[row] = sequence.rows.back();
    }
  }

  void ShareWith(SequenceId id, Sequence& sequence) {
    const SequenceId to = AnySequence();
    const auto found = sequences_.find(to);
    if (found == sequences_.end() || !found->second.rows.empty() || to == id) return;
    Sequence& target = found->second;
    const size_t tokens = UpTo(sequence.rows.size());
    const Status done = pages_->Share(id, to, tokens);
    if (!Expect(done, false)) return;
    CarryOut(id);
    target.rows.assign(sequence.rows.begin(),
                       sequence.rows.begin() + static_cast<ptrdiff_t>(tokens));
    for (size_t i = 0; i < tokens / kPage; ++i) {
      EXPECT_EQ(pages_->Table(to).pages[i], pages_->Table(id).pages[i]);
    }
  }

  void DropFrom(SequenceId id, Sequence& sequence) {
    const size_t first = UpTo(sequence.rows.size());
    const size_t count = UpTo(sequence.rows.size() - first);
    const bool is_promised = first >= sequence.kept;
    if (count != 0 && !is_promised) ForgetPromises(id, sequence, first);
    const Status done = pages_->Drop(id, first, count);
    if (!Expect(done, is_promised)) return;
    CarryOut(id);
    const auto begin = sequence.rows.begin() + static_cast<ptrdiff_t>(first);
    const auto end = sequence.rows.erase(begin, begin + static_cast<ptrdiff_t>(count));
    std::for_each(end, sequence.rows.end(), [&](Row& row) { row.turned_back += count; });
  }

  // If shared pages of kept tokens are going to be given up or written, nothing is promised any
  // more.
  void ForgetPromises(SequenceId id, Sequence& sequence, size_t tokens) {
    const auto pages = pages_->Table(id).pages;
    for (size_t i = tokens / kPage; i < pages.size(); ++i) {
      if (i * kPage < sequence.kept && pages_->num_holders(pages[i]) > 1) {
        sequence.reserved = 0;
        sequence.kept = SIZE_MAX;
      }
    }
  }

  // Whether the request was done. If it was refused, nothing must have changed, and it must not
  // have been promised.
  bool Expect(const Status& result, bool is_promised) {
    if (result) {
      ++counts_.done;
      return true;
    }
    ++counts_.refused;
    EXPECT_FALSE(is_promised) << result.error().message();
    EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory) << result.error().message();
    EXPECT_EQ(pages_->num_free(), num_free_);
    return false;
  }

  void CarryOut(SequenceId id) {
    for (const PageMove& move : pages_->moves()) {
      EXPECT_EQ(pages_->num_holders(move.target_page), 1u) << "a shared page is written";
      EXPECT_GT(move.num_rows, 0u);
      EXPECT_LE(move.source_row + move.num_rows, kPage);
      EXPECT_LE(move.target_row + move.num_rows, kPage);
      const auto own = pages_->Table(id).pages;
      const bool is_own = std::ranges::find(own, move.source_page) != own.end();
      if (!is_own && pages_->num_holders(move.source_page) > 0) ++counts_.copies_of_shared;
      for (uint32_t i = 0; i < move.num_rows; ++i) {
        Row row = cache_[move.source_page * kPage + move.source_row + i];
        EXPECT_NE(row.token, 0u);
        row.turned_back += move.distance;
        cache_[move.target_page * kPage + move.target_row + i] = row;
      }
    }
  }

  void Check() {
    std::vector<size_t> holders(shape_.num_pages);
    for (const auto& [id, sequence] : sequences_) {
      const auto table = pages_->Table(id);
      ASSERT_EQ(pages_->num_tokens(id), sequence.rows.size());
      ASSERT_EQ(table.pages.size(), (sequence.rows.size() + kPage - 1) / kPage);
      for (size_t i = 0; i < sequence.rows.size(); ++i) {
        ASSERT_EQ(cache_[table.Row(i)], sequence.rows[i]) << "sequence " << id << ", token " << i;
      }
      for (const uint32_t page : table.pages) ++holders[page];
    }
    size_t num_held = 0;
    for (uint32_t page = 0; page < shape_.num_pages; ++page) {
      ASSERT_EQ(pages_->num_holders(page), holders[page]) << page;
      num_held += holders[page] != 0;
    }
    num_free_ = pages_->num_free();
    ASSERT_LE(num_free_ + num_held, shape_.num_pages);
  }

  const KvPages::Shape shape_;
  std::mt19937 random_;
  TestKvPages pages_;
  std::vector<Row> cache_;  // By page and row.
  std::map<SequenceId, Sequence> sequences_;
  uint64_t last_token_ = 0;
  size_t num_free_ = 0;  // After the last step.
  Counts counts_;
};

TEST(KvPagesTest, RandomRequestsDoWhatAListOfTokensDoes) {
  RandomRequests::Counts sum;
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // A third to two thirds of the pages that all sequences together could hold.
    const size_t num_sequences = 2 + seed % 4;
    RandomRequests requests({.num_pages = (2 + seed % 3) * num_sequences,
                             .num_sequences = num_sequences,
                             .sequence_tokens = 340 + seed % 40},
                            seed);
    requests.Run(4000);
    if (HasFailure()) return;
    sum.done += requests.counts().done;
    sum.refused += requests.counts().refused;
    sum.copies_of_shared += requests.counts().copies_of_shared;
  }
  EXPECT_GT(sum.done, 40'000u);
  EXPECT_GT(sum.refused, 1'000u);
  EXPECT_GT(sum.copies_of_shared, 200u);
  RecordProperty("copies_of_shared", static_cast<int>(sum.copies_of_shared));
}

}  // namespace
}  // namespace cria
