#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/token_model.h"
#include "llm/prompt_store.h"
#include "llm/sequence_slots.h"

namespace cria {

// Chooses the text of the KV cache that is written to a store before its room is given to others:
// one text at a time. Its pages do not change until it is written, so that no copy is needed while
// other sessions run.
class LeavingText {
 public:
  struct Text {
    std::span<const int32_t> tokens;  // Empty: there is none.
    SequenceId sequence = 0;
  };

  // A text with fewer tokens of its own is not written: computing it again takes less time than
  // writing and reading it is worth.
  static constexpr size_t kMinTokens = 256;

  // There is no store until Use is called.
  LeavingText(TokenModel& model, std::span<SequenceSlots::Slot> slots)
      : model_(model), slots_(slots) {}
  // `store` must outlive this object.
  void Use(PromptStore& store) { store_ = &store; }

  // Returns whether the tokens of the slot after its first `num_kept` must be written before they
  // are given up. If so, chooses this text, unless another one is being written; the caller tries
  // again after End.
  bool Delays(SequenceSlots::Slot& slot, size_t num_kept);
  // Chooses the longest idle text that the store wants, unless a text is being written.
  void ChooseLongest();
  // No text is chosen any more, unless it is being written.
  void Forget();

  bool has_text() const { return slot_ != nullptr; }
  bool is_being_written() const;
  // Whether a text is chosen that no thread has begun to write.
  bool is_waiting() const { return has_text() && !is_being_written(); }

  // Returns the text that is waiting. The caller writes it, if there is one, and then calls End.
  Text Begin();
  void End();

 private:
  // How many of the slot's tokens can be written.
  size_t LengthOf(const SequenceSlots::Slot& slot) const;
  bool IsWanted(const SequenceSlots::Slot& slot) const;

  TokenModel& model_;
  const std::span<SequenceSlots::Slot> slots_;
  PromptStore* store_ = nullptr;
  SequenceSlots::Slot* slot_ = nullptr;  // Has the chosen text.
};

}  // namespace cria
