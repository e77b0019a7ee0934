#include "decode/kv_page_group.h"

#include <algorithm>

#include "core/arena.h"

namespace cria {
namespace {

// Pages on which `num_rows` adjacent rows may lie, wherever they begin.
constexpr size_t MaxPagesOfRows(size_t num_rows) { return NumKvPages(num_rows - 1) + 1; }

}  // namespace

size_t KvPageGroup::PagesOfWindow(size_t window_tokens, size_t chunk_tokens) {
  // While rows are dropped, one page more than those of the window may be held.
  return MaxPagesOfRows(window_tokens - 1 + std::max(chunk_tokens, kKvPageTokens));
}

size_t KvPageGroup::PagesOfCheckpoint(size_t window_tokens) {
  return MaxPagesOfRows(window_tokens - 1 + kCheckpointRange);
}

uint64_t KvPageGroup::MemoryBytes(const Shape& shape, size_t num_places, size_t sequence_tokens) {
  const uint64_t table_entries = uint64_t{num_places} * NumKvPages(sequence_tokens);
  return num_places * sizeof(Sequence) +
         (table_entries + 2 * uint64_t{shape.num_pages}) * sizeof(uint32_t);
}

KvPageGroup::KvPageGroup(const Shape& shape, uint32_t index, size_t num_places,
                         size_t sequence_tokens, std::span<std::byte> memory)
    : shape_(shape),
      index_(index),
      sequences_(TakeArray<Sequence>(memory, num_places)),
      tables_(TakeArray<uint32_t>(memory, num_places * NumKvPages(sequence_tokens))),
      holders_(TakeArray<uint32_t>(memory, shape.num_pages)),
      free_(TakeArray<uint32_t>(memory, shape.num_pages)),
      num_free_(shape.num_pages) {
  // The last free page is taken first, so that the pages of a single sequence are adjacent.
  for (size_t i = 0; i < num_free_; ++i) free_[i] = static_cast<uint32_t>(num_free_ - 1 - i);
}

std::span<uint32_t> KvPageGroup::WholeTable(SequenceId sequence) const {
  const size_t num_blocks = tables_.size() / sequences_.size();
  return tables_.subspan(sequence * num_blocks, num_blocks);
}

std::span<const uint32_t> KvPageGroup::Table(SequenceId sequence) const {
  return WholeTable(sequence).first(NumKvPages(num_tokens(sequence)));
}

size_t KvPageGroup::CountShared(SequenceId sequence, size_t first, size_t end) const {
  const std::span<const uint32_t> pages = Table(sequence);
  size_t count = 0;
  for (size_t i = std::max(first, first_row(sequence) / kKvPageTokens);
       i < std::min(end, pages.size()); ++i) {
    count += IsShared(pages[i]) ? 1 : 0;
  }
  return count;
}

size_t KvPageGroup::WindowBegin(size_t tokens) const {
  const size_t window = shape_.window_tokens;
  return window == 0 ? 0 : tokens - std::min(tokens, window - 1);
}

bool KvPageGroup::CopiesToExtend(SequenceId sequence) const {
  return num_tokens(sequence) % kKvPageTokens != 0 && IsShared(Table(sequence).back());
}

void KvPageGroup::Extend(SequenceId sequence, size_t tokens, PageMoves& moves) {
  Sequence& extended = sequences_[sequence];
  if (tokens == extended.num_tokens) return;
  const std::span<uint32_t> pages = WholeTable(sequence);
  const size_t end = NumKvPages(tokens);
  const size_t first_block = extended.first_row / kKvPageTokens;
  if (end - first_block > shape_.sequence_pages) {
    const size_t kept_block = end - shape_.sequence_pages;
    ReleaseBlocks(pages, first_block, kept_block);
    extended.first_row = static_cast<uint32_t>(kept_block * kKvPageTokens);
  }
  size_t block = extended.num_tokens / kKvPageTokens;
  if (CopiesToExtend(sequence)) {
    const uint32_t shared = pages[block];
    pages[block] = Take();
    CopyRows(shared, pages[block], std::max<size_t>(extended.first_row, block * kKvPageTokens),
             extended.num_tokens, moves);
    Release(shared);
  }
  block = NumKvPages(extended.num_tokens);
  extended.num_tokens = static_cast<uint32_t>(tokens);
  for (uint32_t& page : pages.subspan(block, end - block)) page = Take();
}

void KvPageGroup::Restore(SequenceId sequence, size_t tokens) {
  const size_t first_row = WindowBegin(tokens);
  sequences_[sequence] = {.num_tokens = static_cast<uint32_t>(tokens),
                          .first_row = static_cast<uint32_t>(first_row)};
  const std::span<uint32_t> pages = WholeTable(sequence).first(NumKvPages(tokens));
  for (uint32_t& page : pages.subspan(first_row / kKvPageTokens)) page = Take();
}

bool KvPageGroup::HasPrefix(SequenceId sequence, size_t tokens) const {
  return tokens == 0 || WindowBegin(tokens) >= first_row(sequence);
}

void KvPageGroup::Truncate(SequenceId sequence, size_t tokens) {
  Sequence& truncated = sequences_[sequence];
  const size_t end = NumKvPages(tokens);
  const size_t first_block = truncated.first_row / kKvPageTokens;
  ReleaseBlocks(Table(sequence), std::max(end, first_block), NumKvPages(truncated.num_tokens));
  truncated.num_tokens = static_cast<uint32_t>(tokens);
  if (tokens == 0) truncated.first_row = 0;
}

void KvPageGroup::Share(SequenceId from, SequenceId to, size_t tokens, PageMoves& moves) {
  ShareRows(from, to, first_row(from), tokens, moves);
}

void KvPageGroup::Save(SequenceId sequence, SequenceId checkpoint, PageMoves& moves) {
  const size_t tokens = num_tokens(sequence);
  const size_t needed = WindowBegin(tokens - std::min(tokens, kCheckpointRange));
  const size_t first = std::max(first_row(sequence), needed / kKvPageTokens * kKvPageTokens);
  ShareRows(sequence, checkpoint, first, tokens, moves);
}

void KvPageGroup::ShareRows(SequenceId from, SequenceId to, size_t first_row, size_t tokens,
                            PageMoves& moves) {
  if (tokens == 0) return;
  const std::span<const uint32_t> pages = Table(from);
  const std::span<uint32_t> shared = WholeTable(to);
  Sequence& target = sequences_[to];
  target = {.num_tokens = static_cast<uint32_t>(tokens),
            .first_row = static_cast<uint32_t>(first_row)};
  size_t block = target.first_row / kKvPageTokens;
  for (; block < tokens / kKvPageTokens; ++block) {
    shared[block] = pages[block];
    ++holders_[pages[block]];
  }
  if (tokens % kKvPageTokens != 0) {
    shared[block] = Take();
    CopyRows(pages[block], shared[block], std::max<size_t>(target.first_row, block * kKvPageTokens),
             tokens, moves);
  }
}

bool KvPageGroup::HasRowsWithout(SequenceId sequence, size_t first, size_t count) const {
  const size_t tokens = num_tokens(sequence) - count;
  if (tokens == first) return HasPrefix(sequence, tokens);
  // Rows from the window's begin to `first` stay where they are; those after the dropped tokens are
  // in the window already.
  return WindowBegin(tokens) >= std::min(first, first_row(sequence));
}

void KvPageGroup::Drop(SequenceId sequence, size_t first, size_t count,
                       const SequenceShift& old_shift, const SequenceShift& new_shift,
                       PageMoves& moves) {
  Sequence& changed = sequences_[sequence];
  const size_t old_end = NumKvPages(changed.num_tokens);
  const size_t distance = count / kKvPageTokens;  // In blocks.
  Dropping drop = {.pages = WholeTable(sequence),
                   .first_block = changed.first_row / kKvPageTokens,
                   .first_row = changed.first_row,
                   .begin = first,
                   .end = changed.num_tokens - count,
                   .count = count,
                   .old_shift = old_shift,
                   .new_shift = new_shift};
  const size_t end = NumKvPages(drop.end);
  const bool keeps_rows = drop.first_row <= first;
  if (!keeps_rows) {
    // No row stays where it is. One page is left for a copy while rows move.
    const size_t most_blocks = shape_.sequence_pages - 1;
    drop.begin = std::max(std::max(drop.first_row, first + count) - count,
                          (end - std::min(end, most_blocks)) * kKvPageTokens);
    drop.first_row = drop.begin;
  }
  size_t block = drop.begin / kKvPageTokens;
  if (keeps_rows && first % kKvPageTokens != 0) {
    FillBlock(drop, block, block, moves);
    ++block;
  }
  // Each later block has the page from `distance` blocks behind it.
  ReleaseBlocks(drop.pages, keeps_rows ? block : drop.first_block, block + distance);
  for (; block < end; ++block) FillBlock(drop, block, block + distance, moves);
  ReleaseBlocks(drop.pages, end + distance, old_end);
  changed = {.num_tokens = static_cast<uint32_t>(drop.end),
             .first_row = static_cast<uint32_t>(drop.first_row)};
}

void KvPageGroup::FillBlock(const Dropping& drop, size_t block, size_t page_block,
                            PageMoves& moves) {
  const size_t page_begin = block * kKvPageTokens;
  const size_t begin = std::max(page_begin, drop.begin);
  const size_t end = std::min(page_begin + kKvPageTokens, drop.end);
  const uint32_t old_page = drop.pages[page_block];
  const bool has_page = page_block >= drop.first_block;
  const bool is_own = has_page && !IsShared(old_page);
  const uint32_t page = is_own ? old_page : Take();
  if (has_page && !is_own) {
    CopyRows(old_page, page, std::max(page_begin, drop.first_row), begin, moves);
  }
  for (size_t token = begin; token < end;) {
    const size_t source = token + drop.count;
    size_t num_rows = std::min(end - token, kKvPageTokens - source % kKvPageTokens);
    // The rows of a move have the same shift.
    if (source < drop.old_shift.first) num_rows = std::min(num_rows, drop.old_shift.first - source);
    moves.Add({.source_page = drop.pages[source / kKvPageTokens],
               .target_page = page,
               .position = static_cast<uint32_t>(token),
               .num_rows = static_cast<uint32_t>(num_rows),
               .distance = static_cast<uint32_t>(drop.count),
               .group = index_,
               .old_shift = drop.old_shift.DistanceAt(source),
               .new_shift = drop.new_shift.DistanceAt(token)});
    token += num_rows;
  }
  if (has_page && !is_own) Release(old_page);
  // Later blocks take no rows from the page that this block had.
  drop.pages[block] = page;
}

void KvPageGroup::CopyRows(uint32_t source_page, uint32_t target_page, size_t first_row,
                           size_t end_row, PageMoves& moves) const {
  if (first_row >= end_row) return;
  moves.Add({.source_page = source_page,
             .target_page = target_page,
             .position = static_cast<uint32_t>(first_row),
             .num_rows = static_cast<uint32_t>(end_row - first_row),
             .group = index_});
}

uint32_t KvPageGroup::Take() {
  const uint32_t page = free_[--num_free_];
  holders_[page] = 1;
  return page;
}

void KvPageGroup::Release(uint32_t page) {
  if (--holders_[page] == 0) free_[num_free_++] = page;
}

void KvPageGroup::ReleaseBlocks(std::span<const uint32_t> pages, size_t first, size_t end) {
  // The last page that is released is taken first.
  for (size_t i = end; i > first; --i) Release(pages[i - 1]);
}

}  // namespace cria
