#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/changed_beginning.h"

namespace cria {

class LeavingText;

// Which sequence of a model's KV cache has which tokens, and whose it is: bookkeeping for one
// thread at a time.
//
// A holder is active from Admit to Release: its sequence is not given to others. There may be more
// sequences than can be active. After Release, a sequence keeps its tokens for any later Admit that
// begins with them, until its pages or the sequence itself are needed: pages are taken from the
// sequence that was used least recently, and of sequences the one whose tokens would be missed
// least. Who is admitted shares the pages of the longest common beginning with any sequence; who
// would begin with more of what another holder is reading waits for that. After a Drop, keys and
// values behind it still reflect what was dropped: only their own holder goes on from them.
//
// With a PromptStore, a text that is worth it is written there before its room is given to others.
class SequenceSlots {
 public:
  struct Slot;  // In sequence_slot.h.

  // Must not be moved, and not be destroyed before Leave.
  struct Holder {
    Holder() = default;
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    Slot* slot = nullptr;
    bool is_active = false;  // Between Admit and Release.
  };

  struct Request {
    std::span<const int32_t> tokens;  // What the sequence is to begin with.
    size_t reserved_tokens = 0;       // How long the sequence may become.
    size_t kept_tokens = SIZE_MAX;    // Tokens after these may be dropped.
    // Where generating begins: others may come back to it.
    size_t prompt_tokens = 0;
    // All of the tokens are going to be run at once, if they are not there yet.
    bool reads = false;
    // How many of the first tokens can be read from a store into an empty sequence. If the cache
    // has far fewer, Admit gives the holder an empty sequence.
    size_t stored_tokens = 0;
  };

  // Tokens that were computed again although the cache had them, because other tokens came before
  // them.
  struct Repeats {
    size_t num_tokens = 0;
    ChangedBeginning first;  // Where this was seen for the first time.
  };

  // What the texts of so many sequences take.
  static uint64_t TextBytes(size_t num_sequences, size_t context_tokens);

  // Allocates all memory that it needs. `model` must outlive it.
  explicit SequenceSlots(TokenModel& model);
  SequenceSlots(const SequenceSlots&) = delete;
  SequenceSlots& operator=(const SequenceSlots&) = delete;
  ~SequenceSlots();

  // Gives the holder a sequence with as many of the tokens' beginning as the cache has. Returns
  // false if there is no sequence or no room until an active holder is released. A holder that is
  // active keeps its sequence; only what differs is forgotten.
  Result<bool> Admit(Holder& holder, const Request& request);
  // Whether another holder is reading tokens with which the request begins, so that they can be
  // shared soon. Wants a checkpoint there, if the model needs one.
  bool AwaitsReading(const Holder& holder, const Request& request);
  void Release(Holder& holder);
  // Must be called before the holder is destroyed. Others may take its sequence first.
  void Leave(Holder& holder);

  // The tokens that the cache has of the holder's sequence.
  static std::span<const int32_t> Tokens(const Holder& holder);
  // How many tokens can be run before the sequence gets a checkpoint.
  static size_t TokensToCheckpoint(const Holder& holder);
  // Says that the model ran these tokens behind the others. Adds a checkpoint where one is wanted.
  Status Append(Holder& holder, std::span<const int32_t> tokens);
  // Says which tokens the rows are of that the caller wrote after Restore. `is_exact`: the rows are
  // what the model computes of these tokens alone, so that other texts can begin with them.
  Status AppendRestored(Holder& holder, std::span<const int32_t> tokens, bool is_exact = false);
  static SequenceId Sequence(const Holder& holder);
  // Makes the sequence of an active holder `tokens` long, for rows that were stored elsewhere
  // (Sequences::Restore). The caller writes them and calls AppendRestored. `goes_on`: the holder is
  // still reading the tokens that it was admitted for, and others may wait for them.
  Status Restore(Holder& holder, size_t tokens, bool goes_on = false);

  // Removes tokens [first, first + count) of an active holder; later ones move down. If there is no
  // room for this, if rows are missing that layers with a window then need, or if the model fails,
  // all tokens from `first` on are forgotten, and perhaps those before.
  Status Drop(Holder& holder, size_t first, size_t count);

  // The text that has to be written to a store; Admit may return false until it is written.
  LeavingText& leaving() { return *leaving_; }

  // How many tokens were found in other sequences.
  size_t shared_tokens() const { return shared_tokens_; }
  const Repeats& repeats() const { return repeats_; }
  // How many tokens the sequences have together.
  size_t kept_tokens() const;

 private:
  // What a slot has of the beginning of some tokens.
  struct Match {
    size_t num_equal = 0;   // Tokens that are the same.
    size_t num_tokens = 0;  // How many of these, from the first one on, a sequence can begin with.
  };

  // What any slot has of the request's tokens, and which one has most.
  Match FindSource(const Holder& holder, std::span<const int32_t> tokens, Slot*& source);
  // Looks for the tokens after the first `num_common` ones behind other tokens, in all slots.
  ChangedBeginning FindChange(std::span<const int32_t> tokens, size_t num_common) const;
  // A slot for a text that has `common` tokens in common with `source`, which may be null; null if
  // all are active.
  Slot* ChooseSlot(const Slot* source, size_t common);
  // Leaves what the holder's slot has to whoever begins with it, if `tokens` do not and it is much.
  void LeaveTokens(Holder& holder, std::span<const int32_t> tokens) const;
  static void TakeOver(Slot& slot, Holder& holder);
  // Returns false if there is no room for the copy of a part of a page.
  Result<bool> Share(Slot& source, Slot& target, size_t count);
  // Returns false if there is no room until an active holder is released.
  Result<bool> Reserve(Slot& slot, const Request& request);
  // What the holder could find in the slot.
  Match FindMatch(const Slot& slot, const Holder& holder, std::span<const int32_t> tokens) const;
  // Frees pages of the idle slot that was used least recently. Returns false if there is none,
  // apart from `except` and `also_except`, or if it must be stored first.
  Result<bool> ForgetOldest(const Slot* except, const Slot* also_except = nullptr);

  TokenModel& model_;
  std::vector<Slot> slots_;
  const std::unique_ptr<LeavingText> leaving_;
  uint64_t num_uses_ = 0;
  uint64_t least_worth_ = 0;  // The worth of the last slot whose tokens were given up for others.
  size_t shared_tokens_ = 0;
  Repeats repeats_;
};

}  // namespace cria
