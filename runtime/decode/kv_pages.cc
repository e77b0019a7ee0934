#include "decode/kv_pages.h"

#include <algorithm>

#include "core/arena.h"
#include "core/format.h"

namespace cria {
namespace {

size_t MaxMoves(std::span<const KvPageGroup::Shape> groups) {
  size_t moves = 0;
  for (const KvPageGroup::Shape& group : groups) moves += KvPageGroup::MaxMoves(group);
  return moves;
}

// Checkpoints have places in groups with a window only.
size_t NumPlaces(const KvPages::Shape& shape, const KvPageGroup::Shape& group) {
  return shape.num_sequences + (group.window_tokens == 0 ? 0 : shape.num_checkpoints);
}

}  // namespace

std::vector<KvPageGroup::Shape> KvPages::Groups(const Shape& shape) {
  const KvPageGroup::Shape all = {.num_pages = shape.num_pages,
                                  .sequence_pages = NumKvPages(shape.sequence_tokens)};
  std::vector<KvPageGroup::Shape> groups;
  for (const uint32_t window : shape.windows) {
    KvPageGroup::Shape group = all;
    if (window != 0 && window < shape.sequence_tokens) {
      const size_t pages = KvPageGroup::PagesOfWindow(window, shape.chunk_tokens);
      const size_t all_pages = shape.num_sequences * pages +
                               shape.num_checkpoints * KvPageGroup::PagesOfCheckpoint(window);
      if (pages < all.sequence_pages && all_pages < all.num_pages) {
        group = {.window_tokens = window, .num_pages = all_pages, .sequence_pages = pages};
      }
    }
    if (std::ranges::contains(groups, group.window_tokens, &KvPageGroup::Shape::window_tokens)) {
      continue;
    }
    groups.insert(group.window_tokens == 0 ? groups.begin() : groups.end(), group);
  }
  return groups;
}

size_t KvPages::GroupOf(std::span<const KvPageGroup::Shape> groups, uint32_t window_tokens) {
  const auto own = std::ranges::find(groups, window_tokens, &KvPageGroup::Shape::window_tokens);
  // A window that has no group counts as none.
  return own == groups.end() ? 0 : static_cast<size_t>(own - groups.begin());
}

uint64_t KvPages::MemoryBytes(const Shape& shape) {
  const std::vector<KvPageGroup::Shape> groups = Groups(shape);
  uint64_t bytes = shape.num_sequences * sizeof(Sequence) + MaxMoves(groups) * sizeof(PageMove);
  for (const KvPageGroup::Shape& group : groups) {
    bytes += KvPageGroup::MemoryBytes(group, NumPlaces(shape, group), shape.sequence_tokens);
  }
  return bytes;
}

KvPages::KvPages(const Shape& shape, std::span<std::byte> memory)
    : sequence_tokens_(shape.sequence_tokens),
      chunk_tokens_(shape.chunk_tokens),
      turns_queries_(shape.turns_queries),
      sequences_(TakeArray<Sequence>(memory, shape.num_sequences)),
      moves_(TakeArray<PageMove>(memory, MaxMoves(Groups(shape)))) {
  for (const KvPageGroup::Shape& group : Groups(shape)) {
    const size_t num_places = NumPlaces(shape, group);
    groups_.emplace_back(group, static_cast<uint32_t>(groups_.size()), num_places, sequence_tokens_,
                         memory);
    memory = memory.subspan(
        static_cast<size_t>(KvPageGroup::MemoryBytes(group, num_places, sequence_tokens_)));
  }
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
  for (KvPageGroup& group : groups_) group.Truncate(sequence, 0);
  sequences_[sequence] = {};
}

Status KvPages::Reserve(SequenceId sequence, size_t tokens, size_t kept_tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (Status fits = CheckLength(tokens); !fits) return fits;
  return CheckFree(SetAside(sequence, tokens, kept_tokens));
}

bool KvPages::TryReserve(SequenceId sequence, size_t tokens, size_t kept_tokens) {
  return IsOpen(sequence) && tokens <= sequence_tokens_ &&
         SetAside(sequence, tokens, kept_tokens) == 0;
}

size_t KvPages::SetAside(SequenceId sequence, size_t tokens, size_t kept_tokens) {
  if (AllHaveWindows()) return 0;
  Sequence& changed = sequences_[sequence];
  const Sequence before = changed;
  const size_t set_aside = NumSetAside(sequence);
  const size_t free = num_free();
  const size_t num_held = NumKvPages(num_tokens(sequence));
  size_t kept = std::min<size_t>(kept_tokens / kKvPageTokens, UINT32_MAX);
  // The next token is written to the last page unless that is full.
  if (groups_[0].CopiesToExtend(sequence)) kept = std::min(kept, num_held - 1);
  changed.num_kept = static_cast<uint32_t>(kept);
  changed.num_reserved = static_cast<uint32_t>(std::max(NumKvPages(tokens), num_held));
  const size_t needed = NumSetAside(sequence);
  if (needed <= set_aside + free) return 0;
  changed = before;
  return needed - set_aside;
}

Status KvPages::Extend(SequenceId sequence, size_t tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (Status fits = CheckLength(tokens); !fits) return fits;
  if (tokens < num_tokens(sequence)) {
    return Fail(ErrorCode::kOutOfRange, Format("a sequence of {} tokens cannot be extended to {}",
                                               num_tokens(sequence), tokens));
  }
  if (Status fits = CheckChunk(sequence, tokens); !fits) return fits;
  if (Status free = CheckFree(PagesToExtend(sequence, tokens)); !free) return free;
  moves_.Clear();
  Sequence& extended = sequences_[sequence];
  extended.num_reserved =
      std::max(extended.num_reserved, static_cast<uint32_t>(NumKvPages(tokens)));
  for (KvPageGroup& group : groups_) group.Extend(sequence, tokens, moves_);
  return {};
}

Status KvPages::Restore(SequenceId sequence, size_t tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (Status fits = CheckLength(tokens); !fits) return fits;
  if (num_tokens(sequence) != 0) {
    return Fail(ErrorCode::kUsage, "only an empty sequence can be restored");
  }
  if (Status free = CheckFree(PagesToExtend(sequence, tokens)); !free) return free;
  moves_.Clear();
  Sequence& restored = sequences_[sequence];
  restored.num_reserved =
      std::max(restored.num_reserved, static_cast<uint32_t>(NumKvPages(tokens)));
  for (KvPageGroup& group : groups_) group.Restore(sequence, tokens);
  return {};
}

size_t KvPages::PagesToExtend(SequenceId sequence, size_t tokens) const {
  if (AllHaveWindows()) return 0;
  const Sequence& extended = sequences_[sequence];
  const size_t num_pages = NumKvPages(tokens);
  const size_t num_held = NumKvPages(num_tokens(sequence));
  const bool copies = tokens > num_tokens(sequence) && groups_[0].CopiesToExtend(sequence);
  return num_pages - std::min<size_t>(num_pages, extended.num_reserved) +
         (copies && num_held <= extended.num_kept ? 1 : 0);
}

size_t KvPages::LongestPrefix(size_t place, size_t tokens) const {
  const auto id = static_cast<SequenceId>(place);
  const bool is_checkpoint = IsCheckpoint(place);
  if (!is_checkpoint && !IsOpen(id)) return 0;
  if (is_checkpoint && KeepsAll()) return tokens;
  const size_t prefix = std::min(tokens, groups_.back().num_tokens(id));
  const bool is_there = std::ranges::all_of(groups_, [&](const KvPageGroup& group) {
    return (is_checkpoint && group.window_tokens() == 0) || group.HasPrefix(id, prefix);
  });
  return is_there ? prefix : 0;
}

Status KvPages::Truncate(SequenceId sequence, size_t tokens) {
  if (Status open = CheckOpen(sequence); !open) return open;
  if (tokens > num_tokens(sequence)) {
    return Fail(ErrorCode::kOutOfRange, Format("the sequence has {} tokens, which is less than {}",
                                               num_tokens(sequence), tokens));
  }
  if (Status there = CheckPrefix(sequence, tokens); !there) return there;
  moves_.Clear();
  ForgetKept(sequence, NumKvPages(tokens), 0);
  for (KvPageGroup& group : groups_) group.Truncate(sequence, tokens);
  sequences_[sequence].shift = shift(sequence).Truncated(tokens);
  return {};
}

void KvPages::Save(SequenceId sequence, size_t checkpoint) {
  moves_.Clear();
  for (KvPageGroup& group : WindowedGroups()) {
    group.Save(sequence, static_cast<SequenceId>(checkpoint), moves_);
  }
}

void KvPages::Load(size_t checkpoint, SequenceId sequence, size_t tokens) {
  moves_.Clear();
  // A checkpoint is of tokens before those that were dropped since then.
  sequences_[sequence].shift = shift(sequence).Truncated(tokens);
  if (!AllHaveWindows()) {
    ForgetKept(sequence, NumKvPages(tokens), 0);
    groups_[0].Truncate(sequence, tokens);
  }
  for (KvPageGroup& group : WindowedGroups()) {
    group.Truncate(sequence, 0);
    group.Share(static_cast<SequenceId>(checkpoint), sequence, tokens, moves_);
  }
}

void KvPages::Forget(size_t checkpoint) {
  for (KvPageGroup& group : WindowedGroups()) {
    group.Truncate(static_cast<SequenceId>(checkpoint), 0);
  }
}

std::span<KvPageGroup> KvPages::WindowedGroups() {
  return std::span(groups_).subspan(AllHaveWindows() ? 0 : 1);
}

void KvPages::ForgetKept(SequenceId sequence, size_t first, size_t num_copied) {
  if (AllHaveWindows()) return;
  Sequence& changed = sequences_[sequence];
  changed.num_reserved -=
      static_cast<uint32_t>(groups_[0].CountShared(sequence, first, changed.num_kept) - num_copied);
}

Status KvPages::Share(size_t place, SequenceId from, SequenceId to, size_t tokens) {
  if (Status open = CheckOpen(from); !open) return open;
  if (Status open = CheckOpen(to); !open) return open;
  if (from == to || num_tokens(to) != 0) {
    return Fail(ErrorCode::kUsage, "only an empty sequence can share the tokens of another one");
  }
  if (tokens > num_tokens(from)) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens of a sequence of {} cannot be shared", tokens, num_tokens(from)));
  }
  if (Status there = CheckPrefix(place, tokens); !there) return there;
  if (Status free = CheckFree(PagesToShare(from, to, tokens)); !free) return free;
  moves_.Clear();
  Sequence& target = sequences_[to];
  target.num_reserved = std::max(target.num_reserved, static_cast<uint32_t>(NumKvPages(tokens)));
  target.shift = shift(from).Truncated(tokens);
  if (!AllHaveWindows()) groups_[0].Share(from, to, tokens, moves_);
  for (KvPageGroup& group : WindowedGroups()) {
    group.Share(static_cast<SequenceId>(place), to, tokens, moves_);
  }
  return {};
}

bool KvPages::CanShare(SequenceId from, SequenceId to, size_t tokens) const {
  return IsOpen(from) && IsOpen(to) && PagesToShare(from, to, tokens) <= num_free();
}

size_t KvPages::PagesToShare(SequenceId from, SequenceId to, size_t tokens) const {
  if (AllHaveWindows()) return 0;
  const Sequence& target = sequences_[to];
  const std::span<const uint32_t> pages = groups_[0].Table(from);
  const size_t num_shared = tokens / kKvPageTokens;
  const size_t num_pages = NumKvPages(tokens);
  // The tokens that the target does not compute need no pages, except for their copies.
  size_t needed = std::max<size_t>(target.num_reserved, num_pages) + (num_pages - num_shared);
  needed += num_shared - std::min<size_t>(num_shared, target.num_kept);
  // Where the source alone holds a page that it may write, it needs a copy from now on.
  for (size_t i = sequences_[from].num_kept; i < num_shared; ++i) {
    needed += groups_[0].IsShared(pages[i]) ? 0 : 1;
  }
  return needed - std::min(needed, num_pages + target.num_reserved);
}

bool KvPages::CanDrop(SequenceId sequence, size_t first, size_t count) const {
  const size_t num_tokens = IsOpen(sequence) ? this->num_tokens(sequence) : 0;
  return first <= num_tokens && count <= num_tokens - first &&
         std::ranges::all_of(groups_, [&](const KvPageGroup& group) {
           return group.HasRowsWithout(sequence, first, count);
         });
}

Status KvPages::Drop(SequenceId sequence, size_t first, size_t count) {
  if (Status open = CheckOpen(sequence); !open) return open;
  const size_t old_tokens = num_tokens(sequence);
  if (first > old_tokens || count > old_tokens - first) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens after the first {} cannot be dropped from a sequence of {}",
                       count, first, old_tokens));
  }
  if (!CanDrop(sequence, first, count)) return CheckPrefix(sequence, first);
  const size_t copies = PagesToDrop(sequence, first, count);
  if (first + count < old_tokens) {
    if (Status free = CheckFree(copies); !free) return free;
  }
  moves_.Clear();
  if (first + count == old_tokens) return Truncate(sequence, first);
  if (count == 0) return {};
  ForgetKept(sequence, first / kKvPageTokens, copies);
  const SequenceShift old_shift = shift(sequence);
  const SequenceShift new_shift = turns_queries_ ? old_shift.Dropped(first, count) : old_shift;
  for (KvPageGroup& group : groups_) {
    group.Drop(sequence, first, count, old_shift, new_shift, moves_);
  }
  sequences_[sequence].shift = new_shift;
  return {};
}

size_t KvPages::PagesToDrop(SequenceId sequence, size_t first, size_t count) const {
  if (AllHaveWindows()) return 0;
  // Shared pages that are replaced by copies; for those before num_kept, none was set aside.
  const size_t kept = sequences_[sequence].num_kept;
  const size_t first_whole = NumKvPages(first);
  const size_t distance = count / kKvPageTokens;
  const size_t end = NumKvPages(num_tokens(sequence) - count) + distance;
  return groups_[0].CountShared(sequence, first / kKvPageTokens, std::min(first_whole, kept)) +
         groups_[0].CountShared(sequence, first_whole + distance, std::min(end, kept));
}

size_t KvPages::num_free() const {
  size_t set_aside = 0;
  for (SequenceId i = 0; i < sequences_.size(); ++i) set_aside += NumSetAside(i);
  return groups_[0].num_free() - set_aside;
}

size_t KvPages::NumSetAside(SequenceId sequence) const {
  if (AllHaveWindows()) return 0;
  const Sequence& owner = sequences_[sequence];
  return owner.num_reserved - NumKvPages(num_tokens(sequence)) +
         groups_[0].CountShared(sequence, owner.num_kept, SIZE_MAX);
}

bool KvPages::IsOpen(SequenceId sequence) const {
  return sequence < sequences_.size() && sequences_[sequence].is_open != 0;
}

Status KvPages::CheckOpen(SequenceId sequence) const {
  if (IsOpen(sequence)) return {};
  return Fail(ErrorCode::kUsage, Format("sequence {} of the KV cache is not open", sequence));
}

Status KvPages::CheckLength(size_t tokens) const {
  if (tokens <= sequence_tokens_) return {};
  return Fail(
      ErrorCode::kOutOfRange,
      Format("a sequence of {} tokens does not fit a context of {}", tokens, sequence_tokens_),
      RemedyKind::kLargerContext);
}

Status KvPages::CheckPrefix(size_t place, size_t tokens) const {
  if (LongestPrefix(place, tokens) == tokens) return {};
  return Fail(ErrorCode::kUsage,
              Format("windowed layers have given up rows that the first {} tokens need: run the "
                     "tokens again",
                     tokens));
}

Status KvPages::CheckChunk(SequenceId sequence, size_t tokens) const {
  const size_t added = tokens - num_tokens(sequence);
  if (groups_.back().window_tokens() == 0 || added <= chunk_tokens_) return {};
  return Fail(ErrorCode::kOutOfRange,
              Format("{} tokens do not fit a chunk of {}", added, chunk_tokens_));
}

Status KvPages::CheckFree(size_t needed) const {
  if (needed == 0) return {};
  const size_t free = num_free();
  if (needed <= free) return {};
  return Fail(ErrorCode::kOutOfMemory,
              Format("{} pages of {} tokens are needed, but {} of the KV cache's {} are free",
                     needed, kKvPageTokens, free, num_pages()),
              RemedyKind::kLargerContext);
}

}  // namespace cria
