#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/sequence_store.h"

namespace cria {

// A copy of all that one place keeps to another place.
struct StateCopy {
  uint32_t source = 0;
  uint32_t target = 0;
  bool operator==(const StateCopy&) const = default;
};

// What is kept in a place before and after the tokens of a run: the state of a layer after the
// first `state_tokens` tokens, and behind it what later tokens add to it, row by row.
struct StateRun {
  uint32_t place = 0;
  // 0: the state is that of an empty sequence, whatever the memory has.
  uint32_t state_tokens = 0;
  uint32_t num_kept_rows = 0;     // Behind the state; the run's tokens follow these.
  uint32_t num_tokens = 0;        // The run's tokens.
  uint32_t new_state_tokens = 0;  // After the run; the rows of later tokens are kept behind it.

  size_t first_position() const { return state_tokens + num_kept_rows; }
  size_t num_new_kept_rows() const { return first_position() + num_tokens - new_state_tokens; }
};

// Which states of recurrent layers, such as short convolutions, are kept: of each sequence one of a
// fixed size, whatever its length. A token changes the state, and there is no way back: so the
// state before the last run is kept, and what each token of the run adds to it. Drafts are refused
// by leaving out what they added. Rows of earlier runs would cost every later run the time to add
// them anew.
//
// Save, Load and Share leave copies; the caller carries these out before it reads or writes the
// states. A run changes them: Advance must follow its Extend when it was computed.
class RecurrentStates final : public SequenceStore {
 public:
  struct Shape {
    size_t num_places = 0;  // Places of sequences and checkpoints.
    // What so many of the last tokens of a run add is kept behind the state: a sequence can be
    // truncated by the last run's tokens, but not always by more than these.
    size_t max_rows = 1;
  };

  static uint64_t MemoryBytes(const Shape& shape);
  // `memory` must outlive the object.
  RecurrentStates(const Shape& shape, std::span<std::byte> memory);

  Status Extend(SequenceId sequence, size_t tokens) override;
  Status Restore(SequenceId sequence, size_t tokens) override;
  size_t LongestPrefix(size_t place, size_t tokens) const override;
  Status Truncate(SequenceId sequence, size_t tokens) override;
  void Save(SequenceId sequence, size_t checkpoint) override;
  void Load(size_t checkpoint, SequenceId sequence, size_t tokens) override;
  void Forget(size_t checkpoint) override;
  Status Share(size_t place, SequenceId from, SequenceId to, size_t tokens) override;
  // Only the last tokens can be dropped.
  bool CanDrop(SequenceId sequence, size_t first, size_t count) const override;
  Status Drop(SequenceId sequence, size_t first, size_t count) override;

  // What the tokens of the sequence's last Extend do.
  StateRun Run(SequenceId sequence) const;
  // They were computed.
  void Advance(SequenceId sequence);
  // The computation failed, after it may have changed the state: no token is left.
  void Lose(SequenceId sequence);

  // What the last change leaves to be copied.
  std::span<const StateCopy> copies() const { return {&copy_, has_copy_ ? 1u : 0u}; }
  // It was carried out.
  void ClearCopies() { has_copy_ = false; }

 private:
  struct Place {
    uint32_t state_tokens;
    uint32_t num_tokens;       // At most max_rows more.
    uint32_t extended_tokens;  // num_tokens, or more between Extend and Advance.
  };

  Status CheckPrefix(size_t place, size_t tokens) const;
  uint32_t NewStateTokens(const Place& place) const;
  void Copy(size_t source, size_t target);

  const size_t max_rows_;
  const std::span<Place> places_;
  StateCopy copy_;
  bool has_copy_ = false;
};

}  // namespace cria
