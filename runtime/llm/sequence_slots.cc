#include "llm/sequence_slots.h"

#include <algorithm>

#include "llm/common_beginning.h"
#include "llm/leaving_text.h"
#include "llm/prompt_store.h"
#include "llm/sequence_slot.h"

namespace cria {
namespace {

// Whoever loses or gains fewer tokens, about a page, neither waits nor gets another sequence for
// them.
constexpr size_t kMinSharedTokens = kKvPageTokens;
// A batch does not end at a checkpoint that spares others the reading of fewer tokens.
constexpr size_t kMinCheckpointTokens = 16;

bool IsOutOfMemory(const Status& status) {
  return !status && status.error().code() == ErrorCode::kOutOfMemory;
}

}  // namespace

SequenceSlots::SequenceSlots(TokenModel& model)
    : model_(model),
      slots_(model.sequences().max_open()),
      leaving_(std::make_unique<LeavingText>(model, slots_)) {
  for (Slot& slot : slots_) {
    slot.tokens.reserve(model.context_tokens());
    if (slots_.size() > 1) slot.reading.reserve(model.context_tokens());
  }
}

// Defined here, where slots are complete.
SequenceSlots::~SequenceSlots() = default;

uint64_t SequenceSlots::TextBytes(size_t num_sequences, size_t context_tokens) {
  const uint64_t num_texts = uint64_t{num_sequences} * (num_sequences > 1 ? 2 : 1);
  return num_texts * context_tokens * sizeof(int32_t);
}

SequenceSlots::Match SequenceSlots::FindSource(const Holder& holder,
                                               std::span<const int32_t> tokens, Slot*& source) {
  source = holder.slot;
  Match match = source == nullptr ? Match() : FindMatch(*source, holder, tokens);
  if (holder.is_active) return match;
  for (Slot& slot : slots_) {
    const Match found = FindMatch(slot, holder, tokens);
    match.num_equal = std::max(match.num_equal, found.num_equal);
    if (found.num_tokens <= match.num_tokens) continue;
    source = &slot;
    match.num_tokens = found.num_tokens;
  }
  return match;
}

ChangedBeginning SequenceSlots::FindChange(std::span<const int32_t> tokens,
                                           size_t num_common) const {
  ChangedBeginning longest;
  for (const Slot& slot : slots_) {
    const ChangedBeginning found = FindChangedBeginning(tokens, num_common, slot.tokens);
    if (found.num_same > longest.num_same) longest = found;
  }
  return longest;
}

bool SequenceSlots::AwaitsReading(const Holder& holder, const Request& request) {
  if (holder.is_active || !request.reads) return false;
  Slot* source = nullptr;
  size_t most = FindSource(holder, request.tokens, source).num_tokens + kMinSharedTokens;
  Slot* reader = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.is_active() || slot.num_exact != slot.tokens.size()) continue;
    const size_t common = CommonBeginning(slot.reading, request.tokens);
    if (common < most || slot.tokens.size() >= common) continue;
    most = common;
    reader = &slot;
  }
  if (reader == nullptr) return false;
  if (model_.sequences().has_checkpoints()) reader->checkpoints[1] = most;
  return true;
}

Result<bool> SequenceSlots::Admit(Holder& holder, const Request& request) {
  const auto wanted = request.tokens;
  if (holder.slot != nullptr && holder.slot->is_being_written) return false;
  if (!holder.is_active) {
    const auto num_active = std::ranges::count_if(slots_, &Slot::is_active);
    if (static_cast<size_t>(num_active) >= model_.max_sequences()) return false;
    LeaveTokens(holder, wanted);
  }
  Slot* source = nullptr;
  Match match = FindSource(holder, wanted, source);
  if (!holder.is_active && request.stored_tokens >= match.num_tokens + PromptStore::kMinTokens) {
    source = nullptr;
    match.num_tokens = 0;
  }
  const size_t common = match.num_tokens;
  // The texts are compared now because the lines below may give them up.
  const ChangedBeginning change =
      !holder.is_active && request.reads
          ? FindChange(wanted, std::max(match.num_equal, request.stored_tokens))
          : ChangedBeginning();
  Slot* const chosen = holder.slot != nullptr ? holder.slot : ChooseSlot(source, common);
  if (chosen == nullptr) return false;
  if (!holder.is_active && leaving_->Delays(*chosen, chosen == source ? common : 0)) return false;
  if (holder.slot == nullptr) {
    if (!chosen->sequence) {
      CRIA_ASSIGN_OR_RETURN(chosen->sequence, model_.sequences().Open());
    }
    TakeOver(*chosen, holder);
  }
  if (source != nullptr && source != holder.slot) {
    CRIA_ASSIGN_OR_RETURN(const bool is_shared, Share(*source, *holder.slot, common));
    if (!is_shared) {
      // The source has all sequences.
      if (source->is_active() || leaving_->has_text()) return false;
      TakeOver(*source, holder);
    }
  }
  Slot& slot = *holder.slot;
  slot.NoteUse(++num_uses_, least_worth_);
  CRIA_RETURN_IF_ERROR(slot.Truncate(common, model_));
  CRIA_ASSIGN_OR_RETURN(const bool is_reserved, Reserve(slot, request));
  holder.is_active = holder.is_active || is_reserved;
  if (is_reserved && change.num_same != 0) {
    if (repeats_.num_tokens == 0) repeats_.first = change;
    repeats_.num_tokens += change.num_same;
  }
  if (request.reads && slots_.size() > 1 && is_reserved) {
    slot.reading.assign(wanted.begin(), wanted.end());
  }
  if (model_.sequences().has_checkpoints() && common < request.prompt_tokens) {
    // What is read now may be undone.
    CRIA_RETURN_IF_ERROR(slot.AddCheckpoint(model_));
    // Where two texts part, a third one may part from both.
    slot.checkpoints = {request.prompt_tokens, match.num_equal, request.kept_tokens};
  }
  return is_reserved;
}

void SequenceSlots::Release(Holder& holder) {
  if (!holder.is_active) return;
  holder.is_active = false;
  Slot& slot = *holder.slot;
  slot.NoteUse(++num_uses_, least_worth_);
  slot.reading.clear();
  // This takes less than before, which cannot fail.
  static_cast<void>(slot.Truncate(slot.tokens.size(), model_));
  model_.sequences().TryReserve(*slot.sequence, slot.tokens.size());
}

void SequenceSlots::Leave(Holder& holder) {
  Release(holder);
  if (holder.slot != nullptr) holder.slot->holder = nullptr;
  holder.slot = nullptr;
}

std::span<const int32_t> SequenceSlots::Tokens(const Holder& holder) {
  if (holder.slot == nullptr) return {};
  return holder.slot->tokens;
}

size_t SequenceSlots::TokensToCheckpoint(const Holder& holder) {
  const size_t num_tokens = holder.slot->tokens.size();
  size_t next = SIZE_MAX;
  for (const size_t length : holder.slot->checkpoints) {
    if (length >= num_tokens + kMinCheckpointTokens) next = std::min(next, length - num_tokens);
  }
  return next;
}

Status SequenceSlots::Append(Holder& holder, std::span<const int32_t> tokens) {
  Slot& slot = *holder.slot;
  const bool is_exact = slot.num_exact == slot.tokens.size();
  slot.Append(tokens);
  if (is_exact) slot.num_exact = slot.tokens.size();
  if (!std::ranges::contains(slot.checkpoints, slot.tokens.size())) return {};
  return slot.AddCheckpoint(model_);
}

Status SequenceSlots::AppendRestored(Holder& holder, std::span<const int32_t> tokens,
                                     bool is_exact) {
  Slot& slot = *holder.slot;
  slot.Append(tokens);
  if (!is_exact) return {};
  slot.num_exact = slot.tokens.size();
  return slot.AddCheckpoint(model_);
}

size_t SequenceSlots::kept_tokens() const {
  size_t count = 0;
  for (const Slot& slot : slots_) count += slot.tokens.size();
  return count;
}

SequenceId SequenceSlots::Sequence(const Holder& holder) { return *holder.slot->sequence; }

Status SequenceSlots::Restore(Holder& holder, size_t tokens, bool goes_on) {
  Slot& slot = *holder.slot;
  if (!goes_on) slot.reading.clear();
  CRIA_RETURN_IF_ERROR(slot.Truncate(0, model_));
  return model_.sequences().Restore(*slot.sequence, tokens);
}

Status SequenceSlots::Drop(Holder& holder, size_t first, size_t count) {
  Slot& slot = *holder.slot;
  slot.reading.clear();
  const size_t num_tokens = slot.tokens.size();
  if (first + count >= num_tokens) return slot.Truncate(std::min(first, num_tokens), model_);
  Sequences& sequences = model_.sequences();
  // The sequence may be longer: a Forward that failed has extended it.
  CRIA_RETURN_IF_ERROR(sequences.Truncate(*slot.sequence, num_tokens));
  CRIA_RETURN_IF_ERROR(model_.CarryOutMoves());
  if (!sequences.CanDrop(*slot.sequence, first, count)) return slot.Truncate(first, model_);
  Status dropped = sequences.Drop(*slot.sequence, first, count);
  if (IsOutOfMemory(dropped)) return slot.Truncate(first, model_);
  if (dropped) dropped = model_.CarryOutMoves();
  if (!dropped) {
    CRIA_RETURN_IF_ERROR(slot.Truncate(first, model_));
    return dropped;
  }
  const auto begin = slot.tokens.begin() + static_cast<ptrdiff_t>(first);
  slot.tokens.erase(begin, begin + static_cast<ptrdiff_t>(count));
  slot.num_exact = std::min(slot.num_exact, first);
  return {};
}

SequenceSlots::Slot* SequenceSlots::ChooseSlot(const Slot* source, size_t common) {
  Slot* chosen = nullptr;
  uint64_t least = 0;
  for (Slot& slot : slots_) {
    if (!slot.is_idle()) continue;
    const size_t lost = &slot == source       ? slot.tokens.size() - common
                        : slot.tokens.empty() ? 0
                                              : slot.OwnTokens(slots_);
    // A text that goes on from all that a slot has needs no copy of it.
    if (&slot == source && slot.holder == nullptr && lost < kMinSharedTokens) return &slot;
    const uint64_t worth = slot.tokens.empty() ? 0 : slot.base_worth + lost;
    const bool is_better =
        chosen == nullptr || worth < least || (worth == least && slot.last_use < chosen->last_use);
    if (!is_better) continue;
    chosen = &slot;
    least = worth;
  }
  least_worth_ = std::max(least_worth_, least);
  return chosen;
}

void SequenceSlots::LeaveTokens(Holder& holder, std::span<const int32_t> tokens) const {
  if (holder.slot == nullptr || slots_.size() == 1) return;
  const std::span<const int32_t> own = holder.slot->tokens;
  // Nobody else could begin with what follows a Drop.
  if (holder.slot->num_exact != own.size()) return;
  if (own.size() < CommonBeginning(own, tokens) + kMinSharedTokens) return;
  holder.slot->holder = nullptr;
  holder.slot = nullptr;
}

void SequenceSlots::TakeOver(Slot& slot, Holder& holder) {
  if (slot.holder != nullptr) slot.holder->slot = nullptr;
  if (holder.slot != nullptr) holder.slot->holder = nullptr;
  slot.holder = &holder;
  holder.slot = &slot;
}

Result<bool> SequenceSlots::Share(Slot& source, Slot& target, size_t count) {
  CRIA_RETURN_IF_ERROR(target.Truncate(0, model_));
  Sequences& sequences = model_.sequences();
  while (!sequences.CanShare(*source.sequence, *target.sequence, count)) {
    CRIA_ASSIGN_OR_RETURN(const bool is_freed, ForgetOldest(&source, &target));
    if (!is_freed) return false;
  }
  CRIA_RETURN_IF_ERROR(sequences.Share(*source.sequence, *target.sequence, count));
  CRIA_RETURN_IF_ERROR(model_.CarryOutMoves());
  target.tokens.assign(source.tokens.begin(),
                       source.tokens.begin() + static_cast<ptrdiff_t>(count));
  target.num_exact = count;
  target.is_stored = false;
  source.num_shared = count;
  target.num_shared = count;
  shared_tokens_ += count;
  return true;
}

Result<bool> SequenceSlots::Reserve(Slot& slot, const Request& request) {
  while (!model_.sequences().TryReserve(*slot.sequence, request.reserved_tokens,
                                        request.kept_tokens)) {
    CRIA_ASSIGN_OR_RETURN(const bool is_freed, ForgetOldest(&slot));
    if (!is_freed) return false;
  }
  return true;
}

SequenceSlots::Match SequenceSlots::FindMatch(const Slot& slot, const Holder& holder,
                                              std::span<const int32_t> tokens) const {
  const size_t usable = slot.holder == &holder ? slot.tokens.size() : slot.num_exact;
  if (!slot.sequence) return {};
  const size_t common = CommonBeginning(std::span(slot.tokens).first(usable), tokens);
  return {.num_equal = common,
          .num_tokens = model_.sequences().LongestPrefix(*slot.sequence, common)};
}

Result<bool> SequenceSlots::ForgetOldest(const Slot* except, const Slot* also_except) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.is_idle() || slot.tokens.empty()) continue;
    if (&slot == except || &slot == also_except) continue;
    if (oldest == nullptr || slot.last_use < oldest->last_use) oldest = &slot;
  }
  if (oldest == nullptr || leaving_->Delays(*oldest, 0)) return false;
  CRIA_RETURN_IF_ERROR(oldest->Truncate(0, model_));
  CRIA_RETURN_IF_ERROR(model_.sequences().Reserve(*oldest->sequence, 0));
  return true;
}

}  // namespace cria
