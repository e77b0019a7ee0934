// Random requests, against a model that knows nothing of pages: a list of tokens for each sequence,
// and the position as of which the key of each is turned.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "decode/kv_pages_fixture.h"

namespace cria {
namespace {

struct Row {
  uint64_t token = 0;  // 0: there is none.
  int64_t turned_as = 0;
  bool operator==(const Row&) const = default;
};

class RandomRequests {
 public:
  RandomRequests(const KvPages::Shape& shape, unsigned seed)
      : shape_(shape), random_(seed), pages_(shape) {
    for (size_t group = 0; group < pages_->num_groups(); ++group) {
      caches_.emplace_back(pages_->group(group).num_pages() * kPage);
    }
    has_windows_ = pages_->group(pages_->num_groups() - 1).window_tokens() != 0;
  }

  void Run(size_t num_steps) {
    for (size_t step = 0; step < num_steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      RunStep();
      Check();
      if (testing::Test::HasFailure()) return;
    }
    for (SequenceId i = 0; i < shape_.num_sequences; ++i) pages_->Close(i);
    for (size_t group = 0; group < pages_->num_groups(); ++group) {
      EXPECT_EQ(pages_->group(group).num_free(), pages_->group(group).num_pages())
          << "pages are lost";
    }
    EXPECT_EQ(pages_->num_free(), pages_->num_pages());
  }

  struct Counts {
    size_t done = 0;
    size_t refused = 0;
    size_t copies_of_shared = 0;
    size_t pages_given_back = 0;  // By windows.
    size_t rows_missing = 0;      // Requests that need rows that were given back.
    size_t keys_turned = 0;       // By drops behind other tokens than before.
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Sequence {
    std::vector<Row> rows;
    // Extending to this many tokens cannot fail, nor can dropping tokens after `kept`.
    size_t reserved = 0;
    size_t kept = SIZE_MAX;
    // Truncating to this or more cannot fail.
    size_t rewindable = 0;
  };

  int64_t TurnedAs(SequenceId id, size_t position) const {
    return static_cast<int64_t>(position) + pages_->shift(id).DistanceAt(position);
  }
  Row NewRow(SequenceId id, size_t position) {
    return {.token = ++last_token_, .turned_as = TurnedAs(id, position)};
  }

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  // A number up to `largest`, often at a page's end.
  size_t UpTo(size_t largest) {
    const size_t any = Below(largest + 1);
    return Below(2) == 0 ? any / kPage * kPage : any;
  }
  // A number up to `largest`; with windows, often one of the last.
  size_t Late(size_t largest) {
    return has_windows_ && Below(2) == 0 ? largest - Below(std::min<size_t>(largest, 150) + 1)
                                         : UpTo(largest);
  }
  SequenceId AnySequence() { return static_cast<SequenceId>(Below(shape_.num_sequences)); }

  void RunStep() {
    const SequenceId id = AnySequence();
    const auto found = sequences_.find(id);
    if (found == sequences_.end()) return OpenOne();
    if (found->second.rows.empty() && Below(4) == 0) return RestoreTo(id, found->second);
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
        return TruncateTo(id, sequence, Late(sequence.rows.size()));
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

  // The first position that a token after `tokens` attends to.
  size_t WindowBegin(size_t group, size_t tokens) const {
    const size_t window = pages_->group(group).window_tokens();
    return window == 0 || tokens + 1 < window ? 0 : tokens + 1 - window;
  }
  bool HasPrefix(SequenceId id, size_t tokens) const {
    for (size_t group = 0; group < pages_->num_groups(); ++group) {
      if (WindowBegin(group, tokens) < pages_->group(group).first_row(id)) return tokens == 0;
    }
    return true;
  }

  // If the sequence does not have the prefix, nothing can be done with it.
  bool ExpectPrefix(SequenceId id, const Sequence& sequence, size_t tokens) {
    const bool has_prefix = HasPrefix(id, tokens);
    EXPECT_EQ(pages_->LongestPrefix(id, tokens), has_prefix ? tokens : 0);
    EXPECT_TRUE(has_prefix || tokens < sequence.rewindable) << tokens;
    if (!has_prefix) ++counts_.rows_missing;
    return has_prefix;
  }

  void TruncateTo(SequenceId id, Sequence& sequence, size_t tokens) {
    if (!ExpectPrefix(id, sequence, tokens)) {
      return ExpectRefused(pages_->Truncate(id, tokens), ErrorCode::kUsage, "run the tokens again");
    }
    ForgetPromises(id, sequence, tokens);
    ASSERT_TRUE(pages_->Truncate(id, tokens));
    sequence.rows.resize(tokens);
    sequence.rewindable = std::min(sequence.rewindable, tokens);
  }

  void ExtendTo(SequenceId id, Sequence& sequence) {
    const size_t size = sequence.rows.size();
    const size_t room = shape_.sequence_tokens - size;
    size_t tokens = size + std::min(room, Below(3) == 0 ? UpTo(room) : Below(100));
    if (has_windows_) tokens = std::min(tokens, size + shape_.chunk_tokens);
    std::vector<size_t> first_rows;
    for (size_t i = 0; i < caches_.size(); ++i) {
      first_rows.push_back(pages_->group(i).first_row(id));
    }
    const bool is_promised = tokens <= sequence.reserved || pages_->group(0).window_tokens() != 0;
    const Status done = pages_->Extend(id, tokens);
    if (!Expect(done, is_promised)) return;
    CarryOut(id);
    sequence.rows.resize(tokens);
    for (size_t i = size; i < tokens; ++i) sequence.rows[i] = NewRow(id, i);
    if (tokens > size) sequence.rewindable = size;
    for (size_t group = 0; group < caches_.size(); ++group) {
      counts_.pages_given_back += (pages_->group(group).first_row(id) - first_rows[group]) / kPage;
      // The first of the new tokens attends to these.
      EXPECT_LE(pages_->group(group).first_row(id), WindowBegin(group, size));
      for (size_t i = size; i < tokens; ++i) {
        const size_t row = pages_->Table(id, group).Row(i);
        EXPECT_EQ(pages_->group(group).num_holders(static_cast<uint32_t>(row / kPage)), 1u);
        caches_[group][row] = sequence.rows[i];
      }
    }
  }

  void RestoreTo(SequenceId id, Sequence& sequence) {
    const size_t tokens = UpTo(shape_.sequence_tokens);
    const bool is_promised = tokens <= sequence.reserved || pages_->group(0).window_tokens() != 0;
    if (!Expect(pages_->Restore(id, tokens), is_promised)) return;
    EXPECT_TRUE(pages_->moves().empty());
    // What is restored may have been shifted.
    if (tokens > 3 && Below(2) == 0) pages_->set_shift(id, {.first = 3, .distance = 1000});
    for (size_t i = 0; i < tokens; ++i) sequence.rows.push_back(NewRow(id, i));
    sequence.rewindable = tokens;
    for (size_t group = 0; group < caches_.size(); ++group) {
      EXPECT_EQ(pages_->group(group).first_row(id), WindowBegin(group, tokens));
      for (size_t i = WindowBegin(group, tokens); i < tokens; ++i) {
        caches_[group][pages_->Table(id, group).Row(i)] = sequence.rows[i];
      }
    }
  }

  void ShareWith(SequenceId id, Sequence& sequence) {
    const SequenceId to = AnySequence();
    const auto found = sequences_.find(to);
    if (found == sequences_.end() || !found->second.rows.empty() || to == id) return;
    Sequence& target = found->second;
    const size_t tokens = Late(sequence.rows.size());
    if (!ExpectPrefix(id, sequence, tokens)) {
      return ExpectRefused(pages_->Share(id, to, tokens), ErrorCode::kUsage,
                           "run the tokens again");
    }
    const Status done = pages_->Share(id, to, tokens);
    if (!Expect(done, pages_->group(0).window_tokens() != 0)) return;
    CarryOut(id);
    target.rows.assign(sequence.rows.begin(),
                       sequence.rows.begin() + static_cast<ptrdiff_t>(tokens));
    target.rewindable = std::min(sequence.rewindable, tokens);
    for (size_t group = 0; group < caches_.size(); ++group) {
      for (size_t i = pages_->group(group).first_row(to) / kPage; i < tokens / kPage; ++i) {
        EXPECT_EQ(pages_->Table(to, group).pages[i], pages_->Table(id, group).pages[i]);
      }
    }
  }

  // Without windows, or if all tokens that stay were in all windows, or if all rows are there.
  bool HasRowsWithout(SequenceId id, const Sequence& sequence, size_t first, size_t count) const {
    const size_t tokens = sequence.rows.size() - count;
    if (tokens == first) return HasPrefix(id, tokens);
    for (size_t group = 0; group < caches_.size(); ++group) {
      const size_t first_row = pages_->group(group).first_row(id);
      for (size_t i = WindowBegin(group, tokens); i < tokens; ++i) {
        if ((i < first ? i : i + count) < first_row) return false;
      }
    }
    return true;
  }

  void DropFrom(SequenceId id, Sequence& sequence) {
    const size_t first = UpTo(sequence.rows.size());
    const size_t count = UpTo(sequence.rows.size() - first);
    const bool can_drop = HasRowsWithout(id, sequence, first, count);
    EXPECT_EQ(pages_->CanDrop(id, first, count), can_drop);
    if (!can_drop) {
      ++counts_.rows_missing;
      return ExpectRefused(pages_->Drop(id, first, count), ErrorCode::kUsage,
                           "run the tokens again");
    }
    const bool is_promised = first >= sequence.kept || pages_->group(0).window_tokens() != 0;
    if (count != 0 && !is_promised) ForgetPromises(id, sequence, first);
    const Status done = pages_->Drop(id, first, count);
    if (!Expect(done, is_promised)) return;
    CarryOut(id);
    const auto begin = sequence.rows.begin() + static_cast<ptrdiff_t>(first);
    const auto end = sequence.rows.erase(begin, begin + static_cast<ptrdiff_t>(count));
    for (auto row = end; row != sequence.rows.end(); ++row) {
      const auto position = static_cast<size_t>(row - sequence.rows.begin());
      counts_.keys_turned += row->turned_as == TurnedAs(id, position) ? 0 : 1;
      row->turned_as = TurnedAs(id, position);
    }
    if (count != 0) sequence.rewindable = has_windows_ ? sequence.rows.size() : 0;
  }

  // If shared pages of kept tokens are going to be given up or written, nothing is promised any
  // more.
  void ForgetPromises(SequenceId id, Sequence& sequence, size_t tokens) {
    if (pages_->group(0).window_tokens() != 0) return;
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
      const KvPageGroup& group = pages_->group(move.group);
      std::vector<Row>& cache = caches_[move.group];
      EXPECT_EQ(group.num_holders(move.target_page), 1u) << "a shared page is written";
      EXPECT_GT(move.num_rows, 0u);
      EXPECT_LE(move.source_row() + move.num_rows, kPage);
      EXPECT_LE(move.target_row() + move.num_rows, kPage);
      const auto own = pages_->Table(id, move.group).pages;
      const bool is_own = std::ranges::find(own, move.source_page) != own.end();
      if (!is_own && group.num_holders(move.source_page) > 0) ++counts_.copies_of_shared;
      for (uint32_t i = 0; i < move.num_rows; ++i) {
        Row row = cache[move.source_page * kPage + move.source_row() + i];
        EXPECT_NE(row.token, 0u);
        row.turned_as -= move.turn();
        cache[move.target_page * kPage + move.target_row() + i] = row;
      }
    }
  }

  void Check() {
    for (size_t group = 0; group < caches_.size(); ++group) CheckGroup(group);
    num_free_ = pages_->num_free();
    ASSERT_LE(num_free_, pages_->group(0).num_free());
  }

  void CheckGroup(size_t index) {
    const KvPageGroup& group = pages_->group(index);
    std::vector<size_t> holders(group.num_pages());
    for (const auto& [id, sequence] : sequences_) {
      const size_t num_tokens = sequence.rows.size();
      const auto table = pages_->Table(id, index);
      ASSERT_EQ(group.num_tokens(id), num_tokens);
      ASSERT_EQ(table.pages.size(), (num_tokens + kPage - 1) / kPage);
      ASSERT_LE(group.first_row(id), WindowBegin(index, num_tokens));
      for (size_t i = group.first_row(id); i < num_tokens; ++i) {
        ASSERT_EQ(caches_[index][table.Row(i)], sequence.rows[i])
            << "group " << index << ", sequence " << id << ", token " << i;
        ASSERT_EQ(sequence.rows[i].turned_as, TurnedAs(id, i)) << id << ", token " << i;
      }
      for (const uint32_t page : TableOf(pages_, id, index)) ++holders[page];
    }
    size_t num_held = 0;
    for (uint32_t page = 0; page < holders.size(); ++page) {
      ASSERT_EQ(group.num_holders(page), holders[page]) << page;
      num_held += holders[page] != 0;
    }
    ASSERT_EQ(group.num_free() + num_held, holders.size());
  }

  const KvPages::Shape shape_;
  std::mt19937 random_;
  TestKvPages pages_;
  bool has_windows_ = false;
  std::vector<std::vector<Row>> caches_;  // By group, page and row.
  std::map<SequenceId, Sequence> sequences_;
  uint64_t last_token_ = 0;
  size_t num_free_ = 0;  // After the last step.
  Counts counts_;
};

RandomRequests::Counts& operator+=(RandomRequests::Counts& sum,
                                   const RandomRequests::Counts& other) {
  sum.done += other.done;
  sum.refused += other.refused;
  sum.copies_of_shared += other.copies_of_shared;
  sum.pages_given_back += other.pages_given_back;
  sum.rows_missing += other.rows_missing;
  sum.keys_turned += other.keys_turned;
  return sum;
}

TEST(KvPagesRandomTest, RandomRequestsDoWhatAListOfTokensDoes) {
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
    sum += requests.counts();
  }
  EXPECT_GT(sum.done, 40'000u);
  EXPECT_GT(sum.refused, 1'000u);
  EXPECT_GT(sum.copies_of_shared, 200u);
  EXPECT_EQ(sum.pages_given_back, 0u);
  EXPECT_EQ(sum.rows_missing, 0u);
  EXPECT_GT(sum.keys_turned, 1'000u);
}

TEST(KvPagesRandomTest, WindowedLayersKeepTheRowsOfTheirWindows) {
  RandomRequests::Counts sum;
  const std::vector<std::vector<uint32_t>> windows = {{0, 100}, {65}, {1, 0, 130}, {200, 64}, {2}};
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const size_t num_sequences = 1 + seed % 4;
    const KvPages::Shape shape = {.num_pages = (7 + seed % 5) * num_sequences,
                                  .num_sequences = num_sequences,
                                  .sequence_tokens = 700 + seed % 40,
                                  .chunk_tokens = std::vector<size_t>{1, 30, 70, 128}[seed / 5 % 4],
                                  .windows = windows[seed % 5]};
    ASSERT_EQ(KvPages::Groups(shape).size(), shape.windows.size());
    RandomRequests requests(shape, seed);
    requests.Run(4000);
    if (HasFailure()) return;
    sum += requests.counts();
  }
  EXPECT_GT(sum.done, 40'000u);
  EXPECT_GT(sum.refused, 200u);
  EXPECT_GT(sum.copies_of_shared, 200u);
  EXPECT_GT(sum.pages_given_back, 1'000u);
  EXPECT_GT(sum.rows_missing, 1'000u);
  EXPECT_GT(sum.keys_turned, 1'000u);
}

}  // namespace
}  // namespace cria
