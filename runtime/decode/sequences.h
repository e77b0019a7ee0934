#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "cria/error.h"
#include "decode/decoder_options.h"
#include "decode/kv_pages.h"
#include "decode/recurrent_states.h"
#include "decode/sequence_store.h"

namespace cria {

// The sequences of a model: which tokens each has, in all that the model keeps of them. Whoever
// runs sequences sees only this: so it has more functions than other classes, most of which ask the
// stores.
//
// A model that gives up what earlier tokens had, such as the rows before a window, or that changes
// a state with every token, cannot make a sequence shorter at will. It keeps checkpoints: a bounded
// number for all sequences. A checkpoint belongs to one sequence and is forgotten with the tokens
// that it is of.
//
// Functions that change sequences leave moves (TokenModel::CarryOutMoves). If one fails, nothing
// has changed. Nothing is allocated after the constructor.
class Sequences {
 public:
  struct Shape {
    KvPages::Shape pages;
    size_t max_state_rows = 0;  // RecurrentStates::Shape::max_rows; 0: there are no states.
  };
  static Shape ShapeOf(const ModelConfig& config, const DecoderOptions& options);
  static uint64_t MemoryBytes(const Shape& shape);

  // `memory` must outlive the object.
  Sequences(const Shape& shape, std::span<std::byte> memory);
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  // Begins an empty sequence, for which nothing is reserved.
  Result<SequenceId> Open() { return pages_.Open(); }
  // Gives back all that a sequence has; does nothing if it is not open.
  void Close(SequenceId sequence);

  // KvPages::Reserve and TryReserve: states need no reservation.
  Status Reserve(SequenceId sequence, size_t tokens, size_t kept_tokens = SIZE_MAX) {
    return pages_.Reserve(sequence, tokens, kept_tokens);
  }
  bool TryReserve(SequenceId sequence, size_t tokens, size_t kept_tokens = SIZE_MAX) {
    return pages_.TryReserve(sequence, tokens, kept_tokens);
  }

  Status Extend(SequenceId sequence, size_t tokens);
  Status Restore(SequenceId sequence, size_t tokens);

  // Returns the largest number, up to `tokens` and the length, to which the sequence can be
  // truncated and whose tokens can be shared; the caller runs later tokens again. 0 always works.
  size_t LongestPrefix(SequenceId sequence, size_t tokens) const;
  // Returns the largest such number without checkpoints: what can be read from where the sequence
  // has it.
  size_t OwnPrefix(SequenceId sequence, size_t tokens) const { return PrefixOf(sequence, tokens); }
  // Forgets all tokens after the first `tokens`.
  Status Truncate(SequenceId sequence, size_t tokens);

  // Whether AddCheckpoint does something.
  bool has_checkpoints() const { return !checkpoints_.empty(); }
  // From now on, the sequence can be truncated to the length that it has now, and its tokens so far
  // can be shared, until the checkpoint is forgotten: the one that spares the fewest tokens goes
  // first, but not the two that were used last.
  void AddCheckpoint(SequenceId sequence);

  // Makes the first `tokens` of `from` those of `to`, which must be empty.
  Status Share(SequenceId from, SequenceId to, size_t tokens);
  // Whether there are enough pages for it.
  bool CanShare(SequenceId from, SequenceId to, size_t tokens) const {
    return pages_.CanShare(from, to, tokens);
  }

  // Whether the model keeps all that it needs after a Drop. If not, the caller truncates the
  // sequence and runs the tokens that stay again.
  bool CanDrop(SequenceId sequence, size_t first, size_t count) const;
  // Removes tokens [first, first + count): later ones move down by `count` (KvPages::Drop).
  Status Drop(SequenceId sequence, size_t first, size_t count);
  // Says what shift the keys have that are written to a restored sequence.
  void set_shift(SequenceId sequence, const SequenceShift& shift) {
    pages_.set_shift(sequence, shift);
  }

  // What the last change leaves to be moved was carried out.
  void ClearMoves() {
    pages_.ClearMoves();
    if (states_) states_->ClearCopies();
  }

  // How many can be open at once.
  size_t max_open() const { return num_sequences_; }
  size_t num_tokens(SequenceId sequence) const { return pages_.num_tokens(sequence); }

  const KvPages& pages() const { return pages_; }
  // Null if the model has no recurrent layers.
  RecurrentStates* states() { return states_ ? &*states_ : nullptr; }
  const RecurrentStates* states() const { return states_ ? &*states_ : nullptr; }

 private:
  struct Checkpoint {
    uint32_t is_used;
    SequenceId sequence;
    uint32_t num_tokens;  // It is of so many tokens of the sequence at most.
    uint32_t last_use;
  };
  struct Found {
    size_t place;
    size_t num_tokens;
  };

  size_t PlaceOf(const Checkpoint& checkpoint) const;
  size_t PrefixOf(size_t place, size_t tokens) const;
  // The place that has the longest prefix; if several have it, the first, which is the sequence's
  // own.
  Found FindPrefix(SequenceId sequence, size_t tokens) const;
  // The store that does not have `tokens` of the place; there must be one. Its functions say so.
  SequenceStore& Refusing(size_t place, size_t tokens) const;
  // The checkpoint for the next use.
  Checkpoint& Choose();
  // How many tokens would be run again without the checkpoint.
  size_t SparedTokens(const Checkpoint& checkpoint) const;
  void Forget(Checkpoint& checkpoint);
  // The sequence has new tokens after the first `tokens` from now on.
  void ForgetCheckpointsAfter(SequenceId sequence, size_t tokens);
  void Use(size_t place);

  const size_t num_sequences_;
  KvPages pages_;
  std::optional<RecurrentStates> states_;
  std::vector<SequenceStore*> stores_;
  std::span<Checkpoint> checkpoints_;
  uint32_t num_uses_ = 0;
};

}  // namespace cria
