#pragma once

#include <cstddef>
#include <cstdint>

#include "cria/error.h"

namespace cria {

using SequenceId = uint32_t;

// A checkpoint keeps enough for so many tokens less, too: the last token of a prompt is run again
// for its logits.
inline constexpr size_t kCheckpointRange = 1;

// What a model keeps of sequences for their later tokens, of one kind, such as keys and values:
// bookkeeping alone, the memory is elsewhere. Each sequence has a place. The places behind those of
// the sequences are of checkpoints: what was kept of a sequence at an earlier length. Sequences
// composes all stores of a model and decides whose checkpoints there are.
//
// If a function fails, nothing has changed. Nothing is allocated after the constructor.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;

  // Makes the sequence `tokens` long, which is at least its length: the new tokens can be run.
  virtual Status Extend(SequenceId sequence, size_t tokens) = 0;
  // Makes an empty sequence `tokens` long, for which the caller writes what was kept elsewhere.
  virtual Status Restore(SequenceId sequence, size_t tokens) = 0;

  // The largest number, up to `tokens`, of tokens from the first on that a sequence can have with
  // what a place keeps: its own, or that of one of its checkpoints. 0 always works.
  virtual size_t LongestPrefix(size_t place, size_t tokens) const = 0;
  // Forgets all tokens after the first `tokens`, for which the sequence's own place must keep
  // enough.
  virtual Status Truncate(SequenceId sequence, size_t tokens) = 0;

  // Keeps what the sequence has now in an empty checkpoint.
  virtual void Save(SequenceId sequence, size_t checkpoint) = 0;
  // Forgets all tokens after the first `tokens`, for which the checkpoint keeps enough.
  virtual void Load(size_t checkpoint, SequenceId sequence, size_t tokens) = 0;
  // Makes a checkpoint empty.
  virtual void Forget(size_t checkpoint) = 0;

  // Makes the first `tokens` of `from` those of `to`, which must be empty. `place` is that of
  // `from` or of one of its checkpoints, and keeps enough for them.
  virtual Status Share(size_t place, SequenceId from, SequenceId to, size_t tokens) = 0;

  // Whether Drop is possible.
  virtual bool CanDrop(SequenceId sequence, size_t first, size_t count) const = 0;
  // Removes tokens [first, first + count): later ones move down by `count`.
  virtual Status Drop(SequenceId sequence, size_t first, size_t count) = 0;
};

}  // namespace cria
