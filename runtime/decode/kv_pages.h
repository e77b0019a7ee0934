#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/kv_page_group.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Which pages of the KV cache each sequence holds: bookkeeping alone, the keys and values are
// elsewhere. Layers with the same window form a group, which has its own pages and tables. Without
// a window, a sequence of n tokens holds one page for each kKvPageTokens of them; with a window, it
// gives earlier pages back. Sequences that begin with the same tokens may hold the same pages; such
// a page is never written: a sequence that has to write it gets a copy.
//
// Each sequence and each checkpoint has its own share of the pages of windowed groups, so only the
// pages without a window are reserved and can run out. A window that would save no page counts as
// none. Checkpoints hold pages of windowed groups alone: a sequence has the others anyway.
//
// It has more functions than other classes, because each change has one that says what is missing
// before anything changes.
//
// Extend, Save, Load, Share and Drop change the tables and leave moves; the caller carries these
// out in their order before it reads or writes the cache. If a function fails, nothing has changed.
// Nothing is allocated after the constructor.
class KvPages final : public SequenceStore {
 public:
  struct Shape {
    size_t num_pages = 0;  // Pages of layers without a window.
    size_t num_sequences = 0;
    size_t sequence_tokens = 0;  // Maximum number of tokens of one sequence.
    // With windows, a sequence can be extended by at most this many tokens at once.
    size_t chunk_tokens = 0;
    // The layers' windows, in tokens; 0: without a window.
    std::vector<uint32_t> windows = {0};
    size_t num_checkpoints = 0;
    // Whether queries can be turned by other distances than keys were. If not, a Drop turns keys.
    bool turns_queries = true;
  };
  // What each group of layers has. If there is one without a window, it is the first.
  static std::vector<KvPageGroup::Shape> Groups(const Shape& shape);
  // The index in `groups` of the group for layers with this window.
  static size_t GroupOf(std::span<const KvPageGroup::Shape> groups, uint32_t window_tokens);

  // Bytes of memory that the constructor needs, at a multiple of 4.
  static uint64_t MemoryBytes(const Shape& shape);
  // `memory` must outlive the object.
  KvPages(const Shape& shape, std::span<std::byte> memory);

  // Begins an empty sequence, for which nothing is reserved.
  Result<SequenceId> Open();
  // Gives all pages of a sequence back; does nothing if it is not open.
  void Close(SequenceId sequence);

  // Sets pages aside so that the sequence can be extended to `tokens` in total, and so that tokens
  // after the first `kept_tokens` can be dropped: a copy of each page that is shared, or that
  // another sequence shares later, is set aside unless all its tokens are kept. What is reserved
  // stays through Extend, Truncate and Drop, except that a shared page of kept tokens, if it is
  // given up, frees no page that could be set aside instead.
  Status Reserve(SequenceId sequence, size_t tokens, size_t kept_tokens = SIZE_MAX);
  // Reserves for callers who try again later: returns whether it was possible, and makes no error
  // message.
  bool TryReserve(SequenceId sequence, size_t tokens, size_t kept_tokens = SIZE_MAX);

  // Makes the sequence `tokens` long, which is at least its length: rows for the new tokens can be
  // written. Cannot fail within the reservation; otherwise takes pages that are free.
  Status Extend(SequenceId sequence, size_t tokens) override;

  // Makes an empty sequence `tokens` long whose rows were stored elsewhere: the caller writes those
  // from KvPageGroup::first_row on. In layers with a window, these are as many as the next token
  // needs, whatever was there when they were stored. Takes pages like Extend.
  Status Restore(SequenceId sequence, size_t tokens) override;

  // Whether a sequence can always become shorter: no layer gives rows back.
  bool KeepsAll() const { return groups_.back().window_tokens() == 0; }
  // Windowed layers have given early rows back, so that a sequence cannot always become shorter.
  size_t LongestPrefix(size_t place, size_t tokens) const override;
  Status Truncate(SequenceId sequence, size_t tokens) override;

  void Save(SequenceId sequence, size_t checkpoint) override;
  void Load(size_t checkpoint, SequenceId sequence, size_t tokens) override;
  void Forget(size_t checkpoint) override;

  // Whole pages are shared; the rest of the tokens is copied.
  Status Share(size_t place, SequenceId from, SequenceId to, size_t tokens) override;
  Status Share(SequenceId from, SequenceId to, size_t tokens) {
    return Share(from, from, to, tokens);
  }
  // Whether there are enough pages for it.
  bool CanShare(SequenceId from, SequenceId to, size_t tokens) const;

  // Whether windowed layers have all rows that they need after a Drop. If not, the caller truncates
  // the sequence to 0 and runs the tokens that stay. So it is if what stays is not longer than a
  // window and begins with tokens before the rows that are left.
  bool CanDrop(SequenceId sequence, size_t first, size_t count) const override;
  // Removes tokens [first, first + count): later ones move down by `count`. Pages whose tokens are
  // all removed are given back, and the others stay: where `count` is a number of whole pages, no
  // row moves. Keys stay as they are, unless earlier tokens were dropped behind fewer or more than
  // the first `first` (SequenceShift).
  Status Drop(SequenceId sequence, size_t first, size_t count) override;
  // How the keys of the sequence were left by dropped tokens.
  const SequenceShift& shift(SequenceId sequence) const { return sequences_[sequence].shift; }
  // Says what shift the rows have that were stored and are now those of a restored sequence.
  void set_shift(SequenceId sequence, const SequenceShift& shift) {
    sequences_[sequence].shift = shift;
  }

  // What the last change leaves to be moved.
  std::span<const PageMove> moves() const { return moves_.all(); }
  // They were carried out.
  void ClearMoves() { moves_.Clear(); }

  size_t num_tokens(SequenceId sequence) const { return groups_[0].num_tokens(sequence); }
  size_t num_groups() const { return groups_.size(); }
  const KvPageGroup& group(size_t index) const { return groups_[index]; }
  // The pages that hold the sequence's tokens in the layers of a group. Blocks before the window of
  // the first token that the last Extend added may have none.
  ops::KvPageTable Table(SequenceId sequence, size_t group = 0) const {
    return {groups_[group].Table(sequence)};
  }
  size_t num_holders(uint32_t page) const { return groups_[0].num_holders(page); }
  size_t num_pages() const { return groups_[0].num_pages(); }
  // Pages of layers without a window that no sequence holds and that are not reserved. If there are
  // no such layers, those of the first group that no sequence holds.
  size_t num_free() const;

 private:
  struct Sequence {
    uint32_t is_open;
    // Without a window, how many pages the sequence may hold; at least as many as it holds.
    uint32_t num_reserved;
    // The first pages, which are not going to be written if they are shared.
    uint32_t num_kept;
    SequenceShift shift;
  };

  bool IsCheckpoint(size_t place) const { return place >= sequences_.size(); }
  bool IsOpen(SequenceId sequence) const;
  // Returns the groups that have a window.
  std::span<KvPageGroup> WindowedGroups();
  Status CheckOpen(SequenceId sequence) const;
  Status CheckLength(size_t tokens) const;
  Status CheckPrefix(size_t place, size_t tokens) const;
  Status CheckChunk(SequenceId sequence, size_t tokens) const;
  // Fails if fewer than `needed` pages without a window are free.
  Status CheckFree(size_t needed) const;
  bool AllHaveWindows() const { return groups_[0].window_tokens() != 0; }
  // Pages that are set aside for the sequence.
  size_t NumSetAside(SequenceId sequence) const;
  // Reserves. If pages are missing, changes nothing and returns how many have to be free.
  size_t SetAside(SequenceId sequence, size_t tokens, size_t kept_tokens);
  // How many pages have to be free, in addition to those that are set aside.
  size_t PagesToExtend(SequenceId sequence, size_t tokens) const;
  size_t PagesToShare(SequenceId from, SequenceId to, size_t tokens) const;
  size_t PagesToDrop(SequenceId sequence, size_t first, size_t count) const;
  // Takes shared pages of kept tokens from block `first` on, which are given up, from the
  // reservation: nothing was set aside for these, and they are not freed.
  void ForgetKept(SequenceId sequence, size_t first, size_t num_copied);

  const size_t sequence_tokens_;
  const size_t chunk_tokens_;
  const bool turns_queries_;
  std::vector<KvPageGroup> groups_;
  std::span<Sequence> sequences_;
  PageMoves moves_;
};

}  // namespace cria
