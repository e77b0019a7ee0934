#pragma once

#include <cstdint>
#include <span>

#include "llm/sequence_slots.h"

namespace cria {

// A session's place in a scheduler. It must not be moved, and not be destroyed before
// Scheduler::Leave.
class Seat {
 public:
  // Its sequence, between Begin and End. Nobody else writes its rows.
  SequenceId sequence() const { return SequenceSlots::Sequence(holder_); }

 private:
  friend class Scheduler;
  friend class ScheduledBatch;
  friend class StoredPrompts;

  SequenceSlots::Holder holder_;
  // It is between Begin and End, and its last run was one token, perhaps with drafts.
  bool is_decoding_ = false;
  bool holds_logits_ = false;
  uint64_t expected_in_round_ = 0;
  uint64_t forward_ = 0;  // The Forward that computed its logits; 0: it has none.
  std::span<const std::span<float>> logits_;
};

}  // namespace cria
