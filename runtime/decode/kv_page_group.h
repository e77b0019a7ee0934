#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric.h"
#include "decode/sequence_shift.h"
#include "decode/sequence_store.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Rows of a page that are copied to other rows or, if both are the same, whose keys are turned
// where they are if they are turned.
struct PageMove {
  uint32_t source_page = 0;
  uint32_t target_page = 0;
  uint32_t position = 0;  // The first row's, after the move.
  uint32_t num_rows = 0;
  uint32_t distance = 0;  // The rows' new positions are less by this.
  // The group in KvPages: the rows are those of its layers.
  uint32_t group = 0;
  // SequenceShift::DistanceAt of the rows before and after the move.
  uint32_t old_shift = 0;
  uint32_t new_shift = 0;

  // On the pages.
  uint32_t source_row() const { return (position + distance) % kKvPageTokens; }
  uint32_t target_row() const { return position % kKvPageTokens; }
  // By how many positions rope must turn the keys back; it may be negative.
  int64_t turn() const { return int64_t{distance} + old_shift - new_shift; }
  bool operator==(const PageMove&) const = default;
};

// Moves to be carried out in their order, in memory of a fixed size.
class PageMoves {
 public:
  explicit PageMoves(std::span<PageMove> memory) : memory_(memory) {}

  void Clear() { size_ = 0; }
  void Add(const PageMove& move) { memory_[size_++] = move; }
  std::span<const PageMove> all() const { return memory_.first(size_); }

 private:
  std::span<PageMove> memory_;
  size_t size_ = 0;
};

// Pages that `num_tokens` tokens from the beginning of a page on occupy.
constexpr size_t NumKvPages(size_t num_tokens) {
  return DivideRoundingUp(num_tokens, kKvPageTokens);
}

// What the layers with the same window share: a pool of pages, which all have as many rows in these
// layers, and the table of each sequence. KvPages decides what is possible and calls all groups;
// the functions here do it, and cannot fail if their conditions hold. It has as many functions as
// KvPages has changes and questions.
//
// With a window of W tokens, a sequence of n tokens needs the rows of its last W - 1 tokens: the
// next token attends to these and to itself. Earlier pages are given back when a sequence would
// hold more than `sequence_pages`.
class KvPageGroup {
 public:
  struct Shape {
    size_t window_tokens = 0;   // 0: none, all rows are kept.
    size_t num_pages = 0;       // The pool's.
    size_t sequence_pages = 0;  // Maximum number of pages that one sequence holds.
  };
  // How many pages a sequence holds at most, if it is extended by up to `chunk_tokens` at once.
  static size_t PagesOfWindow(size_t window_tokens, size_t chunk_tokens);
  // How many pages a checkpoint holds at most.
  static size_t PagesOfCheckpoint(size_t window_tokens);

  // Bytes of memory that the constructor needs, at a multiple of 4. Sequences have up to
  // `sequence_tokens`.
  static uint64_t MemoryBytes(const Shape& shape, size_t num_places, size_t sequence_tokens);
  // `index` is that of the group, for its moves. `num_places`: of sequences, and with a window of
  // checkpoints, which hold pages like sequences. `memory` must outlive the object.
  KvPageGroup(const Shape& shape, uint32_t index, size_t num_places, size_t sequence_tokens,
              std::span<std::byte> memory);
  // How many moves one call adds at most.
  static size_t MaxMoves(const Shape& shape) { return 2 * shape.sequence_pages + 2; }

  size_t window_tokens() const { return shape_.window_tokens; }
  // The first position that a token after the first `tokens` attends to.
  size_t WindowBegin(size_t tokens) const;
  size_t num_pages() const { return shape_.num_pages; }
  // Pages that no sequence holds.
  size_t num_free() const { return num_free_; }
  // How many sequences hold the page.
  size_t num_holders(uint32_t page) const { return holders_[page]; }
  bool IsShared(uint32_t page) const { return holders_[page] > 1; }

  size_t num_tokens(SequenceId sequence) const { return sequences_[sequence].num_tokens; }
  // The earliest position whose row the sequence has; it has those of all later ones.
  size_t first_row(SequenceId sequence) const { return sequences_[sequence].first_row; }
  // The pages of blocks up to the last token. Entries before the block of first_row() are old.
  std::span<const uint32_t> Table(SequenceId sequence) const;
  // How many of the pages of blocks [first, end) are shared; there are none after the last block.
  size_t CountShared(SequenceId sequence, size_t first, size_t end) const;

  // Whether Extend to more tokens replaces the last page by a copy.
  bool CopiesToExtend(SequenceId sequence) const;
  // `tokens` is at least the sequence's length, and with a window at most chunk_tokens more.
  void Extend(SequenceId sequence, size_t tokens, PageMoves& moves);

  // Makes an empty sequence `tokens` long, with the rows that its next token needs.
  void Restore(SequenceId sequence, size_t tokens);

  // Whether the rows are there that the sequence needs if it has only its first `tokens`, which is
  // at most its length. Then it can be truncated to them, and they can be shared.
  bool HasPrefix(SequenceId sequence, size_t tokens) const;
  void Truncate(SequenceId sequence, size_t tokens);
  void Share(SequenceId from, SequenceId to, size_t tokens, PageMoves& moves);
  // Shares all tokens of a sequence, but only the rows that a checkpoint keeps.
  void Save(SequenceId sequence, SequenceId checkpoint, PageMoves& moves);

  // Whether the rows are there that the sequence needs without tokens [first, first + count).
  bool HasRowsWithout(SequenceId sequence, size_t first, size_t count) const;
  // Some tokens must stay after the dropped ones. The sequence has the two shifts before and after.
  void Drop(SequenceId sequence, size_t first, size_t count, const SequenceShift& old_shift,
            const SequenceShift& new_shift, PageMoves& moves);

 private:
  struct Sequence {
    uint32_t num_tokens;
    uint32_t first_row;
  };
  // Where rows go in a Drop.
  struct Dropping {
    std::span<uint32_t> pages;  // The table.
    size_t first_block;         // The first one that has a page.
    size_t first_row;
    size_t begin;  // Rows of positions [begin, end) come from `count` positions later.
    size_t end;
    size_t count;
    SequenceShift old_shift;
    SequenceShift new_shift;
  };

  std::span<uint32_t> WholeTable(SequenceId sequence) const;
  uint32_t Take();
  void Release(uint32_t page);
  // Releases the pages of blocks [first, end).
  void ReleaseBlocks(std::span<const uint32_t> pages, size_t first, size_t end);
  // Shares rows from `first_row` on.
  void ShareRows(SequenceId from, SequenceId to, size_t first_row, size_t tokens, PageMoves& moves);
  // Copies rows [first_row, end_row) of a page to another page.
  void CopyRows(uint32_t source_page, uint32_t target_page, size_t first_row, size_t end_row,
                PageMoves& moves) const;
  // Gives a block its rows. Its page is that of block `page_block`, or a new one if that is shared
  // or there is none.
  void FillBlock(const Dropping& drop, size_t block, size_t page_block, PageMoves& moves);

  const Shape shape_;
  const uint32_t index_;
  std::span<Sequence> sequences_;
  std::span<uint32_t> tables_;   // [num_places][pages of sequence_tokens]
  std::span<uint32_t> holders_;  // [num_pages]
  std::span<uint32_t> free_;     // [num_pages], of which the first num_free_ are free pages.
  size_t num_free_ = 0;
};

}  // namespace cria
