#include "llm/sequence_slots.h"

#include <algorithm>

#include "llm/common_beginning.h"

namespace cria {
namespace {

// A batch does not end at a checkpoint that spares others the reading of fewer tokens.
constexpr size_t kMinCheckpointTokens = 16;

bool IsOutOfMemory(const Status& status) {
  return !status && status.error().code() == ErrorCode::kOutOfMemory;
}

}  // namespace

SequenceSlots::SequenceSlots(TokenModel& model) : model_(model), slots_(model.max_sequences()) {
  for (Slot& slot : slots_) slot.tokens.reserve(model.context_tokens());
}

Result<bool> SequenceSlots::Admit(Holder& holder, const Request& request) {
  const auto wanted = request.tokens;
  Slot* source = holder.slot;
  Match match = source == nullptr ? Match() : FindMatch(*source, holder, wanted);
  size_t num_equal = match.num_equal;
  if (!holder.is_active) {
    for (Slot& slot : slots_) {
      const Match found = FindMatch(slot, holder, wanted);
      num_equal = std::max(num_equal, found.num_equal);
      if (found.num_tokens <= match.num_tokens) continue;
      source = &slot;
      match = found;
    }
  }
  const size_t common = match.num_tokens;
  if (holder.slot == nullptr) {
    Slot* const chosen = ChooseSlot(source);
    if (chosen == nullptr) return false;
    if (!chosen->sequence) {
      CRIA_ASSIGN_OR_RETURN(chosen->sequence, model_.sequences().Open());
    }
    TakeOver(*chosen, holder);
  }
  if (source != nullptr && source != holder.slot) {
    CRIA_ASSIGN_OR_RETURN(const bool is_shared, Share(*source, *holder.slot, common));
    if (!is_shared) {
      // The source has all sequences.
      if (source->is_active()) return false;
      TakeOver(*source, holder);
    }
  }
  Slot& slot = *holder.slot;
  slot.last_use = ++num_uses_;
  CRIA_RETURN_IF_ERROR(Truncate(slot, common));
  CRIA_ASSIGN_OR_RETURN(const bool is_reserved, Reserve(slot, request));
  holder.is_active = holder.is_active || is_reserved;
  if (model_.sequences().has_checkpoints() && common < request.prompt_tokens) {
    // What is read now may be undone.
    CRIA_RETURN_IF_ERROR(AddCheckpoint(slot));
    // Where two texts part, a third one may part from both.
    slot.checkpoints = {request.prompt_tokens, num_equal, request.kept_tokens};
  }
  return is_reserved;
}

void SequenceSlots::Release(Holder& holder) {
  if (!holder.is_active) return;
  holder.is_active = false;
  Slot& slot = *holder.slot;
  slot.last_use = ++num_uses_;
  // This takes less than before, which cannot fail.
  static_cast<void>(Truncate(slot, slot.tokens.size()));
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
  AppendRestored(holder, tokens);
  if (is_exact) slot.num_exact = slot.tokens.size();
  if (!std::ranges::contains(slot.checkpoints, slot.tokens.size())) return {};
  return AddCheckpoint(slot);
}

Status SequenceSlots::AddCheckpoint(Slot& slot) {
  Sequences& sequences = model_.sequences();
  // The sequence may be longer by drafts that were not accepted.
  if (sequences.num_tokens(*slot.sequence) != slot.tokens.size()) return {};
  sequences.AddCheckpoint(*slot.sequence);
  return model_.CarryOutMoves();
}

void SequenceSlots::AppendRestored(Holder& holder, std::span<const int32_t> tokens) {
  std::vector<int32_t>& all = holder.slot->tokens;
  all.insert(all.end(), tokens.begin(), tokens.end());
}

size_t SequenceSlots::kept_tokens() const {
  size_t count = 0;
  for (const Slot& slot : slots_) count += slot.tokens.size();
  return count;
}

SequenceId SequenceSlots::Sequence(const Holder& holder) { return *holder.slot->sequence; }

Status SequenceSlots::Restore(Holder& holder, size_t tokens) {
  Slot& slot = *holder.slot;
  CRIA_RETURN_IF_ERROR(Truncate(slot, 0));
  return model_.sequences().Restore(*slot.sequence, tokens);
}

Status SequenceSlots::Drop(Holder& holder, size_t first, size_t count) {
  Slot& slot = *holder.slot;
  const size_t num_tokens = slot.tokens.size();
  if (first + count >= num_tokens) return Truncate(slot, std::min(first, num_tokens));
  Sequences& sequences = model_.sequences();
  // The sequence may be longer: a Forward that failed has extended it.
  CRIA_RETURN_IF_ERROR(sequences.Truncate(*slot.sequence, num_tokens));
  CRIA_RETURN_IF_ERROR(model_.CarryOutMoves());
  if (!sequences.CanDrop(*slot.sequence, first, count)) return Truncate(slot, first);
  Status dropped = sequences.Drop(*slot.sequence, first, count);
  if (IsOutOfMemory(dropped)) return Truncate(slot, first);
  if (dropped) dropped = model_.CarryOutMoves();
  if (!dropped) {
    CRIA_RETURN_IF_ERROR(Truncate(slot, first));
    return dropped;
  }
  const auto begin = slot.tokens.begin() + static_cast<ptrdiff_t>(first);
  slot.tokens.erase(begin, begin + static_cast<ptrdiff_t>(count));
  slot.num_exact = std::min(slot.num_exact, first);
  return {};
}

// Returns a slot whose holder is not active, or null. If the holder of `source` has left, it is
// `source`; otherwise it is an empty slot or the one that was used least recently, and `source`
// only if there is no other.
SequenceSlots::Slot* SequenceSlots::ChooseSlot(Slot* source) {
  if (source != nullptr && source->holder == nullptr) return source;
  Slot* chosen = nullptr;
  for (Slot& slot : slots_) {
    if (slot.is_active()) continue;
    if (slot.tokens.empty()) return &slot;
    const bool is_better = chosen == nullptr || chosen == source ||
                           (&slot != source && slot.last_use < chosen->last_use);
    if (is_better) chosen = &slot;
  }
  return chosen;
}

void SequenceSlots::TakeOver(Slot& slot, Holder& holder) {
  if (slot.holder != nullptr) slot.holder->slot = nullptr;
  if (holder.slot != nullptr) holder.slot->holder = nullptr;
  slot.holder = &holder;
  holder.slot = &slot;
}

Result<bool> SequenceSlots::Share(Slot& source, Slot& target, size_t count) {
  CRIA_RETURN_IF_ERROR(Truncate(target, 0));
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

Status SequenceSlots::Truncate(Slot& slot, size_t count) {
  Sequences& sequences = model_.sequences();
  slot.tokens.resize(sequences.LongestPrefix(*slot.sequence, std::min(count, slot.tokens.size())));
  slot.num_exact = std::min(slot.num_exact, slot.tokens.size());
  CRIA_RETURN_IF_ERROR(sequences.Truncate(*slot.sequence, slot.tokens.size()));
  return model_.CarryOutMoves();
}

Result<bool> SequenceSlots::ForgetOldest(const Slot* except, const Slot* also_except) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.is_active() || slot.tokens.empty() || &slot == except || &slot == also_except)
      continue;
    if (oldest == nullptr || slot.last_use < oldest->last_use) oldest = &slot;
  }
  if (oldest == nullptr) return false;
  CRIA_RETURN_IF_ERROR(Truncate(*oldest, 0));
  CRIA_RETURN_IF_ERROR(model_.sequences().Reserve(*oldest->sequence, 0));
  return true;
}

}  // namespace cria
