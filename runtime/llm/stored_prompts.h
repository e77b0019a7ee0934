#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "llm/prompt_store.h"
#include "llm/seat.h"

namespace cria {

class Scheduler;

// Moves texts between the KV cache of a scheduler and a store, in the thread of a session that
// needs the text or its room. Rows are read from and written to where they are in the cache, while
// the sessions whose sequences they are not go on. Thread-safe.
class StoredPrompts {
 public:
  StoredPrompts(Scheduler& scheduler, PromptStore& store) : scheduler_(scheduler), store_(store) {}

  // How many of the first tokens the store has; 0 if these are too few.
  size_t Find(std::span<const int32_t> tokens) const {
    const size_t count = store_.Find(tokens);
    return count < PromptStore::kMinTokens ? 0 : count;
  }
  // Reads these tokens into the seat's sequence, which is empty and has room for them. Returns how
  // many it has then.
  size_t Read(Seat& seat, std::span<const int32_t> tokens);
  // Writes the text that the cache is about to give up (LeavingText), if there is one.
  void WriteLeaving() { WriteNext(/*chooses_longest=*/false); }
  // Writes all texts that the store wants and that no session is using, the longest ones first. No
  // text is begun after `end`.
  void WriteAll(std::chrono::steady_clock::time_point end);
  // How many tokens were read. Not thread-safe: for the scheduler, which locks its mutex.
  size_t num_tokens() const { return num_tokens_; }

 private:
  // Returns false if there is nothing to write.
  bool WriteNext(bool chooses_longest);

  Scheduler& scheduler_;
  PromptStore& store_;
  size_t num_tokens_ = 0;
};

}  // namespace cria
