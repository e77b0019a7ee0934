#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "ops/kv_cache_view.h"

namespace cria {

using SequenceId = uint32_t;

// Rows of a page that are copied to other rows or, if both are the same, whose keys are rotated
// where they are.
struct PageMove {
  uint32_t source_page = 0;
  uint32_t source_row = 0;  // On the page.
  uint32_t target_page = 0;
  uint32_t target_row = 0;
  uint32_t num_rows = 0;
  // The rows' new positions are less by this; rope must rotate their keys back by it.
  uint32_t distance = 0;

  bool operator==(const PageMove&) const = default;
};

// Which pages of the KV cache each sequence holds: bookkeeping alone, the keys and values are
// elsewhere. A sequence of n tokens holds one page for each kKvPageTokens of them. Sequences that
// begin with the same tokens may hold the same pages; such a page is never written: a sequence that
// has to write it gets a copy.
//
// Extend, Share and Drop change the tables and leave moves; the caller carries these out in their
// order before it reads or writes the cache. If a function fails, nothing has changed. Nothing is
// allocated after the constructor.
class KvPages {
 public:
  struct Shape {
    size_t num_pages = 0;
    size_t num_sequences = 0;
    size_t sequence_tokens = 0;  // Maximum number of tokens of one sequence.
  };
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

  // Makes the sequence `tokens` long, which is at least its length: rows for the new tokens can be
  // written. Cannot fail within the reservation; otherwise takes pages that are free.
  Status Extend(SequenceId sequence, size_t tokens);

  // Forgets all tokens after the first `tokens`.
  Status Truncate(SequenceId sequence, size_t tokens);

  // Makes the first `tokens` of `from` those of `to`, which must be empty. Whole pages are shared;
  // the rest of the tokens is copied.
  Status Share(SequenceId from, SequenceId to, size_t tokens);

  // Removes tokens [first, first + count): later ones move down by `count`. Where whole pages are
  // removed, later pages stay, and only their keys are rotated.
  Status Drop(SequenceId sequence, size_t first, size_t count);

  // What the last Extend, Share or Drop leaves to be moved, until the next one.
  std::span<const PageMove> moves() const { return moves_.first(num_moves_); }

  size_t num_tokens(SequenceId sequence) const { return sequences_[sequence].num_tokens; }
  // The pages that hold the sequence's tokens.
  ops::KvPageTable Table(SequenceId sequence) const;
  // How many sequences hold the page.
  size_t num_holders(uint32_t page) const { return holders_[page]; }
  size_t num_pages() const { return holders_.size(); }
  // Pages that no sequence holds and that are not reserved.
  size_t num_free() const;

 private:
  struct Sequence {
    uint32_t is_open;
    uint32_t num_tokens;
    // How many pages the sequence may hold; at least as many as it holds.
    uint32_t num_reserved;
    // The first pages, which are not going to be written if they are shared.
    uint32_t num_kept;
  };

  bool IsOpen(SequenceId sequence) const;
  Status CheckOpen(SequenceId sequence) const;
  Status CheckLength(size_t tokens) const;
  // Fails if fewer than `needed` pages are free.
  Status CheckFree(size_t needed) const;
  std::span<uint32_t> PagesOf(SequenceId sequence) const;
  bool IsShared(uint32_t page) const { return holders_[page] > 1; }
  // How many of pages[first] to pages[end - 1] are shared; there are none after the last page.
  size_t CountShared(std::span<const uint32_t> pages, size_t first, size_t end) const;
  // Pages that are set aside for the sequence.
  size_t NumSetAside(SequenceId sequence) const;

  uint32_t Take();
  void Release(uint32_t page);
  void ReleaseFrom(std::span<const uint32_t> pages, size_t first);
  void AddMove(const PageMove& move) { moves_[num_moves_++] = move; }
  // Gives pages[block] the tokens of [first, num_tokens) that belong there, from `count` tokens
  // later; a shared page is replaced by a copy of its tokens before `first`.
  void MoveIntoPage(std::span<uint32_t> pages, size_t block, size_t first, size_t num_tokens,
                    size_t count);
  // Rotates the keys of the first `num_rows` rows of a page; a shared page is replaced by a copy.
  void TurnPage(uint32_t& page, size_t num_rows, size_t count);

  const Shape shape_;
  std::span<Sequence> sequences_;
  std::span<uint32_t> tables_;   // [num_sequences][pages of sequence_tokens]
  std::span<uint32_t> holders_;  // [num_pages]
  std::span<uint32_t> free_;     // [num_pages], of which the first num_free_ are free pages.
  std::span<PageMove> moves_;
  size_t num_free_ = 0;
  size_t num_moves_ = 0;
};

}  // namespace cria
