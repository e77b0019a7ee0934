#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/sequence_slots.h"

namespace cria {

// A sequence of the model, and the tokens that it has.
struct SequenceSlots::Slot {
  std::optional<SequenceId> sequence;  // Empty until the slot is used.
  std::vector<int32_t> tokens;         // Capacity for a whole context.
  // What its holder is reading, whose beginning `tokens` has already; the same capacity.
  std::vector<int32_t> reading;
  // Keys and values of the first so many tokens are what the model computes of these tokens alone.
  size_t num_exact = 0;
  // How many tokens this slot and another one had in common when they last began to share pages.
  size_t num_shared = 0;
  // The lengths at which the sequence gets checkpoints: where other tokens may follow later.
  std::array<size_t, 3> checkpoints = {};
  Holder* holder = nullptr;  // The last one; null after it left.
  uint64_t last_use = 0;
  // The slot is worth so much more than its own tokens: what slots were worth that were given up
  // before its last use (GreedyDual, Young 1994).
  uint64_t base_worth = 0;
  bool is_being_written = false;  // To a PromptStore: no thread may change the slot meanwhile.
  bool is_stored = false;         // Writing it was tried after its last token was added.

  bool is_active() const { return holder != nullptr && holder->is_active; }
  // Whether the slot may be given to others.
  bool is_idle() const { return !is_active() && !is_being_written; }
  void NoteUse(uint64_t use, uint64_t least_worth) {
    last_use = use;
    base_worth = least_worth;
  }
  void Append(std::span<const int32_t> added) {
    tokens.insert(tokens.end(), added.begin(), added.end());
    is_stored = false;
  }

  // Keeps at most the first `count` tokens: none if rows are missing that they need.
  Status Truncate(size_t count, TokenModel& model);
  // Lets other texts begin with the tokens so far, if the model needs a checkpoint for that.
  Status AddCheckpoint(TokenModel& model);
  // How many tokens none of the other slots has.
  size_t OwnTokens(std::span<const Slot> slots) const;
};

}  // namespace cria
