#include "llm/leaving_text.h"

#include "llm/sequence_slot.h"

namespace cria {

bool LeavingText::Delays(SequenceSlots::Slot& slot, size_t num_kept) {
  if (store_ == nullptr || slot.num_exact < num_kept + kMinTokens) return false;
  // Tokens that other slots have as well stay in the cache.
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

bool LeavingText::is_being_written() const { return has_text() && slot_->is_being_written; }

LeavingText::Text LeavingText::Begin() {
  // Another session may have gone on from this text since it was chosen.
  if (is_waiting() && (!slot_->is_idle() || !IsWanted(*slot_))) slot_ = nullptr;
  if (!is_waiting()) return {};
  SequenceSlots::Slot& slot = *slot_;
  const size_t length = LengthOf(slot);
  slot.is_being_written = true;
  // The store reads what the sequence has, not its checkpoints: the sequence goes back to one.
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
  // With checkpoints, a stored text serves only texts that begin with all of it. Other texts will
  // probably differ where two have differed already.
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
