#include "decode/kv_pages.h"

#include <algorithm>
#include <memory>

#include "core/format.h"
#include "core/numeric.h"

namespace cria {
namespace {

constexpr size_t NumPages(size_t num_tokens) { return DivideRoundingUp(num_tokens, kKvPageTokens); }

// Each block of a drop has rows of two pages, and the first one also rows that stay.
size_t MaxMoves(const KvPages::Shape& shape) { return 2 * NumPages(shape.sequence_tokens) + 1; }

// Takes an array of zeros from the beginning of `memory`.
template <typename T>
std::span<T> TakeArray(std::span<std::byte>& memory, size_t count) {
  auto* const first = reinterpret_cast<T*>(memory.data());
  std::uninitialized_value_construct_n(first, count);
  memory = memory.subspan(count * sizeof(T));
  return {first, count};
}

}  // namespace

uint64_t KvPages::MemoryBytes(const Shape& shape) {
  const uint64_t table_entries = uint64_t{shape.num_sequences} * NumPages(shape.sequence_tokens);
  return shape.num_sequences * sizeof(Sequence) +
         (table_entries + 2 * uint64_t{shape.num_pages}) * sizeof(uint32_t) +
         MaxMoves(shape) * sizeof(PageMove);
}

KvPages::KvPages(const Shape& shape, std::span<std::byte> memory)
    : shape_(shape),
      sequences_(TakeArray<Sequence>(memory, shape.num_sequences)),
      tables_(TakeArray<uint32_t>(memory, shape.num_sequences * NumPages(shape.sequence_tokens))),
      holders_(TakeArray<uint32_t>(memory, shape.num_pages)),
      free_(TakeArray<uint32_t>(memory, shape.num_pages)),
      moves_(TakeArray<PageMove>(memory, MaxMoves(shape))),
      num_free_(shape.num_pages) {
  // The last free page is taken first, so that the pages of a single sequence are adjacent.
  for (size_t i = 0; i < num_free_; ++i) free_[i] = static_cast<uint32_t>(num_free_ - 1 - i);
}

Result<SequenceId> KvPages::Open() {
  const auto closed = std::ranges::find(sequences_, 0u, &Sequence::is_open);
  if (closed == sequences_.end()) {
    return Fail(ErrorCode::kUsage,
                Format("the KV cache is for {} sequences, which are all in use: close one of them",
                       sequences_.size()));
  }
  *closed = {.is_open = 1, .num_kept = UINT32_MAX};
  return static_cast<SequenceId>(closed - sequences_.begin());
}

void KvPages::Close(SequenceId sequence) {
  if (!IsOpen(sequence)) return;
  ReleaseFrom(PagesOf(sequence), 0);
  sequences_[sequence] = {};
}

Status KvPages::Reserve(SequenceId sequence, size_t tokens, size_t kept_tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (Status fits = CheckLength(tokens); !fits) return fits;
  Sequence& changed = sequences_[sequence];
  const Sequence before = changed;
  const size_t set_aside = NumSetAside(sequence);
  const size_t free = num_free();
  const std::span<const uint32_t> pages = PagesOf(sequence);
  const size_t whole_pages = changed.num_tokens / kKvPageTokens;
  size_t kept = std::min<size_t>(kept_tokens / kKvPageTokens, UINT32_MAX);
  // The next token is written to the last page unless that is full.
  if (pages.size() > whole_pages && IsShared(pages.back())) kept = std::min(kept, whole_pages);
  changed.num_kept = static_cast<uint32_t>(kept);
  changed.num_reserved = static_cast<uint32_t>(std::max(NumPages(tokens), pages.size()));
  const size_t needed = NumSetAside(sequence);
  if (needed <= set_aside + free) return {};
  changed = before;
  return CheckFree(needed - set_aside);
}

Status KvPages::Extend(SequenceId sequence, size_t tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (Status fits = CheckLength(tokens); !fits) return fits;
  Sequence& extended = sequences_[sequence];
  if (tokens < extended.num_tokens) {
    return Fail(ErrorCode::kOutOfRange, Format("a sequence of {} tokens cannot be extended to {}",
                                               extended.num_tokens, tokens));
  }
  num_moves_ = 0;
  const std::span<uint32_t> pages = PagesOf(sequence);
  const size_t num_pages = NumPages(tokens);
  const size_t num_rows = extended.num_tokens % kKvPageTokens;  // On the last page; 0: it is full.
  const bool copies = num_rows != 0 && tokens > extended.num_tokens && IsShared(pages.back());
  size_t needed = num_pages - std::min<size_t>(num_pages, extended.num_reserved);
  if (copies && pages.size() <= extended.num_kept) ++needed;
  if (Status free = CheckFree(needed); !free) return free;

  if (copies) {
    const uint32_t shared = pages.back();
    pages.back() = Take();
    AddMove({.source_page = shared,
             .target_page = pages.back(),
             .num_rows = static_cast<uint32_t>(num_rows)});
    Release(shared);
  }
  extended.num_tokens = static_cast<uint32_t>(tokens);
  extended.num_reserved = std::max(extended.num_reserved, static_cast<uint32_t>(num_pages));
  for (uint32_t& page : PagesOf(sequence).subspan(pages.size())) page = Take();
  return {};
}

Status KvPages::Truncate(SequenceId sequence, size_t tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  Sequence& truncated = sequences_[sequence];
  if (tokens > truncated.num_tokens) {
    return Fail(ErrorCode::kOutOfRange, Format("the sequence has {} tokens, which is less than {}",
                                               truncated.num_tokens, tokens));
  }
  const std::span<uint32_t> pages = PagesOf(sequence);
  const size_t num_pages = NumPages(tokens);
  // Nothing was set aside for these, and they are not freed.
  truncated.num_reserved -=
      static_cast<uint32_t>(CountShared(pages, num_pages, truncated.num_kept));
  ReleaseFrom(pages, num_pages);
  truncated.num_tokens = static_cast<uint32_t>(tokens);
  return {};
}

Status KvPages::Share(SequenceId from, SequenceId to, size_t tokens) {
  if (Status open = CheckOpen(from); !open) return open;
  if (Status open = CheckOpen(to); !open) return open;
  const Sequence& source = sequences_[from];
  Sequence& target = sequences_[to];
  if (from == to || target.num_tokens != 0) {
    return Fail(ErrorCode::kUsage, "only an empty sequence can share the tokens of another one");
  }
  if (tokens > source.num_tokens) {
    return Fail(ErrorCode::kOutOfRange, Format("{} tokens of a sequence of {} cannot be shared",
                                               tokens, source.num_tokens));
  }
  num_moves_ = 0;
  const std::span<const uint32_t> pages = PagesOf(from);
  const size_t num_shared = tokens / kKvPageTokens;
  const size_t num_rows = tokens % kKvPageTokens;
  const size_t num_pages = NumPages(tokens);
  // The tokens that the target does not compute need no pages, except for their copies.
  const size_t reserved = std::max<size_t>(target.num_reserved, num_pages);
  size_t needed = reserved + (num_rows != 0 ? 1 : 0);
  needed += num_shared - std::min<size_t>(num_shared, target.num_kept);
  // Where the source alone holds a page that it may write, it needs a copy from now on.
  for (size_t i = source.num_kept; i < num_shared; ++i) needed += IsShared(pages[i]) ? 0 : 1;
  const size_t given = num_pages + target.num_reserved;
  if (Status free = CheckFree(needed - std::min(needed, given)); !free) return free;

  target.num_tokens = static_cast<uint32_t>(tokens);
  target.num_reserved = static_cast<uint32_t>(reserved);
  const std::span<uint32_t> shared = PagesOf(to);
  for (size_t i = 0; i < num_shared; ++i) {
    shared[i] = pages[i];
    ++holders_[shared[i]];
  }
  if (num_rows != 0) {
    shared.back() = Take();
    AddMove({.source_page = pages[num_shared],
             .target_page = shared.back(),
             .num_rows = static_cast<uint32_t>(num_rows)});
  }
  return {};
}

Status KvPages::Drop(SequenceId sequence, size_t first, size_t count) {
  if (Status open = CheckOpen(sequence); !open) return open;
  Sequence& changed = sequences_[sequence];
  if (first > changed.num_tokens || count > changed.num_tokens - first) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens after the first {} cannot be dropped from a sequence of {}",
                       count, first, changed.num_tokens));
  }
  num_moves_ = 0;
  const size_t num_tokens = changed.num_tokens - count;
  if (first == num_tokens) return Truncate(sequence, first);
  if (count == 0) return {};

  const std::span<uint32_t> pages = PagesOf(sequence);
  const size_t num_pages = NumPages(num_tokens);
  const size_t begin = first / kKvPageTokens;
  const size_t kept = changed.num_kept;
  const bool moves_pages = count % kKvPageTokens == 0;
  // The first page that stays whole, and from how many pages later it comes.
  const size_t first_whole = NumPages(first);
  const size_t distance = count / kKvPageTokens;
  // Shared pages that are replaced by copies; for those before num_kept, none was set aside.
  const size_t copies = moves_pages ? CountShared(pages, begin, std::min(first_whole, kept)) +
                                          CountShared(pages, first_whole + distance, kept)
                                    : CountShared(pages, begin, std::min(num_pages, kept));
  if (Status free = CheckFree(copies); !free) return free;
  // As in Truncate.
  changed.num_reserved -= static_cast<uint32_t>(CountShared(pages, begin, kept) - copies);

  const size_t end_rows = moves_pages ? first_whole : num_pages;
  for (size_t i = begin; i < end_rows; ++i) MoveIntoPage(pages, i, first, num_tokens, count);
  if (moves_pages) {
    ReleaseFrom(pages.first(first_whole + distance), first_whole);
    for (size_t i = first_whole; i < num_pages; ++i) {
      pages[i] = pages[i + distance];
      TurnPage(pages[i], std::min(num_tokens - i * kKvPageTokens, kKvPageTokens), count);
    }
  } else {
    ReleaseFrom(pages, num_pages);
  }
  changed.num_tokens = static_cast<uint32_t>(num_tokens);
  return {};
}

void KvPages::MoveIntoPage(std::span<uint32_t> pages, size_t block, size_t first, size_t num_tokens,
                           size_t count) {
  const size_t page_begin = block * kKvPageTokens;
  const size_t begin = std::max(page_begin, first);
  const size_t end = std::min(page_begin + kKvPageTokens, num_tokens);
  const uint32_t old_page = pages[block];
  const uint32_t page = IsShared(old_page) ? Take() : old_page;
  if (page != old_page && begin != page_begin) {
    AddMove({.source_page = old_page,
             .target_page = page,
             .num_rows = static_cast<uint32_t>(begin - page_begin)});
  }
  for (size_t token = begin; token < end;) {
    const size_t source = token + count;
    const size_t source_row = source % kKvPageTokens;
    const size_t num_rows = std::min(end - token, kKvPageTokens - source_row);
    AddMove({.source_page = pages[source / kKvPageTokens],
             .source_row = static_cast<uint32_t>(source_row),
             .target_page = page,
             .target_row = static_cast<uint32_t>(token - page_begin),
             .num_rows = static_cast<uint32_t>(num_rows),
             .distance = static_cast<uint32_t>(count)});
    token += num_rows;
  }
  if (page != old_page) Release(old_page);
  // Later blocks take no rows from the old page.
  pages[block] = page;
}

void KvPages::TurnPage(uint32_t& page, size_t num_rows, size_t count) {
  const uint32_t old_page = page;
  if (IsShared(old_page)) page = Take();
  AddMove({.source_page = old_page,
           .target_page = page,
           .num_rows = static_cast<uint32_t>(num_rows),
           .distance = static_cast<uint32_t>(count)});
  if (page != old_page) Release(old_page);
}

ops::KvPageTable KvPages::Table(SequenceId sequence) const { return {PagesOf(sequence)}; }

size_t KvPages::num_free() const {
  size_t set_aside = 0;
  for (SequenceId i = 0; i < sequences_.size(); ++i) set_aside += NumSetAside(i);
  return num_free_ - set_aside;
}

size_t KvPages::NumSetAside(SequenceId sequence) const {
  const std::span<const uint32_t> pages = PagesOf(sequence);
  const Sequence& owner = sequences_[sequence];
  return owner.num_reserved - pages.size() + CountShared(pages, owner.num_kept, pages.size());
}

size_t KvPages::CountShared(std::span<const uint32_t> pages, size_t first, size_t end) const {
  size_t count = 0;
  for (size_t i = first; i < std::min(end, pages.size()); ++i) count += IsShared(pages[i]) ? 1 : 0;
  return count;
}

bool KvPages::IsOpen(SequenceId sequence) const {
  return sequence < sequences_.size() && sequences_[sequence].is_open != 0;
}

std::span<uint32_t> KvPages::PagesOf(SequenceId sequence) const {
  return tables_.subspan(sequence * NumPages(shape_.sequence_tokens),
                         NumPages(sequences_[sequence].num_tokens));
}

Status KvPages::CheckOpen(SequenceId sequence) const {
  if (IsOpen(sequence)) return {};
  return Fail(ErrorCode::kUsage, Format("sequence {} of the KV cache is not open", sequence));
}

Status KvPages::CheckLength(size_t tokens) const {
  if (tokens <= shape_.sequence_tokens) return {};
  return Fail(ErrorCode::kOutOfRange,
              Format("a sequence of {} tokens does not fit a context of {}", tokens,
                     shape_.sequence_tokens),
              RemedyKind::kLargerContext);
}

Status KvPages::CheckFree(size_t needed) const {
  if (needed == 0) return {};
  const size_t free = num_free();
  if (needed <= free) return {};
  return Fail(ErrorCode::kOutOfMemory,
              Format("{} pages of {} tokens are needed, but {} of the KV cache's {} are free",
                     needed, kKvPageTokens, free, holders_.size()),
              RemedyKind::kLargerContext);
}

uint32_t KvPages::Take() {
  const uint32_t page = free_[--num_free_];
  holders_[page] = 1;
  return page;
}

void KvPages::Release(uint32_t page) {
  if (--holders_[page] == 0) free_[num_free_++] = page;
}

void KvPages::ReleaseFrom(std::span<const uint32_t> pages, size_t first) {
  // The last page that is released is taken first.
  for (size_t i = pages.size(); i > first; --i) Release(pages[i - 1]);
}

}  // namespace cria
