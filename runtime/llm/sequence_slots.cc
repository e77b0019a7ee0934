#include "llm/sequence_slots.h"

#include <algorithm>

namespace cria {
namespace {

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
  size_t common = source == nullptr ? 0 : CommonBeginning(*source, holder, wanted);
  if (!holder.is_active) {
    for (Slot& slot : slots_) {
      const size_t found = CommonBeginning(slot, holder, wanted);
      if (found <= common) continue;
      source = &slot;
      common = found;
    }
  }
  if (holder.slot == nullptr) {
    Slot* const chosen = ChooseSlot(source);
    if (chosen == nullptr) return false;
    if (!chosen->sequence) {
      CRIA_ASSIGN_OR_RETURN(chosen->sequence, model_.pages().Open());
    }
    TakeOver(*chosen, holder);
  }
  if (source != nullptr && source != holder.slot) {
    CRIA_ASSIGN_OR_RETURN(const bool is_shared, Share(*source, *holder.slot, common));
    if (!is_shared) {
      // The source has all pages.
      if (source->is_active()) return false;
      TakeOver(*source, holder);
    }
  }
  Slot& slot = *holder.slot;
  slot.last_use = ++num_uses_;
  CRIA_RETURN_IF_ERROR(Truncate(slot, common));
  CRIA_ASSIGN_OR_RETURN(const bool is_reserved, Reserve(slot, request));
  holder.is_active = holder.is_active || is_reserved;
  return is_reserved;
}

void SequenceSlots::Release(Holder& holder) {
  if (!holder.is_active) return;
  holder.is_active = false;
  Slot& slot = *holder.slot;
  slot.last_use = ++num_uses_;
  // This takes less than before, which cannot fail.
  static_cast<void>(model_.pages().Truncate(*slot.sequence, slot.tokens.size()));
  model_.pages().TryReserve(*slot.sequence, slot.tokens.size());
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

void SequenceSlots::Append(Holder& holder, std::span<const int32_t> tokens) {
  const bool is_exact = holder.slot->num_exact == holder.slot->tokens.size();
  AppendRestored(holder, tokens);
  if (is_exact) holder.slot->num_exact = holder.slot->tokens.size();
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
  return model_.pages().Restore(*slot.sequence, tokens);
}

Status SequenceSlots::Drop(Holder& holder, size_t first, size_t count) {
  Slot& slot = *holder.slot;
  const size_t num_tokens = slot.tokens.size();
  if (first + count >= num_tokens) return Truncate(slot, std::min(first, num_tokens));
  KvPages& pages = model_.pages();
  // The sequence may be longer: a Forward that failed has extended it.
  CRIA_RETURN_IF_ERROR(pages.Truncate(*slot.sequence, num_tokens));
  if (!pages.CanDrop(*slot.sequence, first, count)) return Truncate(slot, first);
  Status dropped = pages.Drop(*slot.sequence, first, count);
  if (IsOutOfMemory(dropped)) return Truncate(slot, first);
  if (dropped) dropped = model_.Move(pages.moves());
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
  KvPages& pages = model_.pages();
  while (!pages.CanShare(*source.sequence, *target.sequence, count)) {
    CRIA_ASSIGN_OR_RETURN(const bool is_freed, ForgetOldest(&source, &target));
    if (!is_freed) return false;
  }
  CRIA_RETURN_IF_ERROR(pages.Share(*source.sequence, *target.sequence, count));
  CRIA_RETURN_IF_ERROR(model_.Move(pages.moves()));
  target.tokens.assign(source.tokens.begin(),
                       source.tokens.begin() + static_cast<ptrdiff_t>(count));
  target.num_exact = count;
  shared_tokens_ += count;
  return true;
}

Result<bool> SequenceSlots::Reserve(Slot& slot, const Request& request) {
  while (!model_.pages().TryReserve(*slot.sequence, request.reserved_tokens, request.kept_tokens)) {
    CRIA_ASSIGN_OR_RETURN(const bool is_freed, ForgetOldest(&slot));
    if (!is_freed) return false;
  }
  return true;
}

size_t SequenceSlots::CommonBeginning(const Slot& slot, const Holder& holder,
                                      std::span<const int32_t> tokens) const {
  const size_t usable = slot.holder == &holder ? slot.tokens.size() : slot.num_exact;
  const auto found = std::span(slot.tokens).first(usable);
  const auto end = std::ranges::mismatch(found, tokens).in1;
  const auto common = static_cast<size_t>(end - found.begin());
  return slot.sequence ? model_.pages().LongestPrefix(*slot.sequence, common) : 0;
}

Status SequenceSlots::Truncate(Slot& slot, size_t count) {
  KvPages& pages = model_.pages();
  slot.tokens.resize(pages.LongestPrefix(*slot.sequence, std::min(count, slot.tokens.size())));
  slot.num_exact = std::min(slot.num_exact, slot.tokens.size());
  return pages.Truncate(*slot.sequence, slot.tokens.size());
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
  CRIA_RETURN_IF_ERROR(model_.pages().Reserve(*oldest->sequence, 0));
  return true;
}

}  // namespace cria
