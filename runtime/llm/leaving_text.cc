#include "llm/leaving_text.h"

#include "llm/sequence_slot.h"

namespace cria {

bool LeavingText::is_being_written() const { return slot_ != nullptr && slot_->is_being_written; }

bool LeavingText::Delays(SequenceSlots::Slot& slot, size_t num_kept) {
  if (store_ == nullptr || slot.num_exact < num_kept + kMinTokens) return false;
  // What other slots have, too, is not given up.
  if (slot.OwnTokens(slots_) < kMinTokens || !IsWanted(slot)) return false;
  if (!is_being_written()) slot_ = &slot;
  return true;
}

void LeavingText::ChooseLongest() {
  if (store_ == nullptr || is_being_written()) return;
  slot_ = nullptr;
  for (SequenceSlots::Slot& slot : slots_) {
    if (!slot.is_idle() || !IsWanted(slot)) continue;
    if (slot_ == nullptr || slot.num_exact > slot_->num_exact) slot_ = &slot;
  }
}

void LeavingText::Forget() {
  if (!is_being_written()) slot_ = nullptr;
}

LeavingText::Text LeavingText::Begin() {
  if (!is_waiting()) return {};
  // Another session may have gone on from it.
  if (!slot_->is_idle() || !IsWanted(*slot_)) {
    slot_ = nullptr;
    return {};
  }
  SequenceSlots::Slot& slot = *slot_;
  const size_t length = LengthOf(slot);
  slot.is_being_written = true;
  // A checkpoint cannot be read: what it keeps becomes what the sequence has.
  if (model_.sequences().has_checkpoints() && !slot.Truncate(length, model_)) {
    End();
    return {};
  }
  return {.tokens = std::span(slot.tokens).first(length), .sequence = *slot.sequence};
}

void LeavingText::End() {
  slot_->is_being_written = false;
  slot_->is_stored = true;
  slot_ = nullptr;
}

size_t LeavingText::LengthOf(const SequenceSlots::Slot& slot) const {
  const Sequences& sequences = model_.sequences();
  const size_t shared = slot.num_shared;
  // With checkpoints, what is stored serves only texts that have all of it. Where texts have
  // parted, others may part.
  if (sequences.has_checkpoints() && shared >= kMinTokens &&
      sequences.LongestPrefix(*slot.sequence, shared) == shared) {
    return shared;
  }
  return sequences.OwnPrefix(*slot.sequence, slot.num_exact);
}

bool LeavingText::IsWanted(const SequenceSlots::Slot& slot) const {
  if (slot.is_stored || slot.num_exact < kMinTokens) return false;
  const size_t length = LengthOf(slot);
  return length >= kMinTokens && store_->Wants(std::span(slot.tokens).first(length));
}

}  // namespace cria
