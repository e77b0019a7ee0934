#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/token_model.h"
#include "llm/prompt_store.h"
#include "llm/sequence_slots.h"

namespace cria {

// Which text of the KV cache is to be written to a store before it is given up: one at a time. Its
// pages stay as they are until then, so that it is written without a copy, while others run.
class LeavingText {
 public:
  struct Text {
    std::span<const int32_t> tokens;  // Empty: there is none.
    SequenceId sequence = 0;
  };

  // A text with fewer tokens of its own is not written: computing it again takes less time than
  // writing and reading it is worth.
  static constexpr size_t kMinTokens = 256;

  // Until Use, there is no store.
  LeavingText(TokenModel& model, std::span<SequenceSlots::Slot> slots)
      : model_(model), slots_(slots) {}
  // `store` must outlive this object.
  void Use(PromptStore& store) { store_ = &store; }

  // Whether what the slot has behind its first `num_kept` tokens must be written before it is given
  // up. Then this text is the next one, unless another one is being written: the caller tries again
  // after End.
  bool Delays(SequenceSlots::Slot& slot, size_t num_kept);
  // Makes the longest text that the store wants the next one.
  void ChooseLongest();
  // The next one does not need to be written any more.
  void Forget();

  bool has_text() const { return slot_ != nullptr; }
  // Whether a session is writing the text.
  bool is_being_written() const;
  // Whether there is a text that no session has begun to write.
  bool is_waiting() const { return has_text() && !is_being_written(); }

  // Whoever calls this writes the text, if there is one, and then calls End.
  Text Begin();
  void End();

 private:
  // How many of the slot's tokens can be written.
  size_t LengthOf(const SequenceSlots::Slot& slot) const;
  bool IsWanted(const SequenceSlots::Slot& slot) const;

  TokenModel& model_;
  const std::span<SequenceSlots::Slot> slots_;
  PromptStore* store_ = nullptr;
  SequenceSlots::Slot* slot_ = nullptr;
};

}  // namespace cria
