#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/pooled_hidden.h"
#include "llm/seat.h"

namespace cria {

// A call of Scheduler::Run, which is in the stack of its thread until it is done.
struct ScheduledWork {
  struct Options {
    // Behind a single token, some of these are run with it, as many as there is room for. Drafts
    // are not tokens of the sequence until they are accepted.
    std::span<const int32_t> drafts;
    size_t num_candidates = 0;  // BatchRun::num_candidates.
    // Gets the hidden states, and then there are no logits. Null: there are logits.
    PooledHidden* pooled = nullptr;
    // Ends a pause before the work; the work is run all the same. May be null.
    const std::atomic<bool>* cancel = nullptr;
  };
  Seat& seat;
  std::span<const int32_t> tokens;
  Options options;
  ScheduledWork* next = nullptr;
  // What of it is in the batch.
  struct Taken {
    size_t num_tokens = 0;
    size_t num_drafts = 0;
  };
  Taken taken = {};
  bool is_done = false;
  Status status = {};

  bool is_single() const { return tokens.size() == 1; }
  // A token behind which the session chooses the next one.
  bool is_decoding() const { return is_single() && options.pooled == nullptr; }
  bool ends() const { return taken.num_tokens == tokens.size(); }
  bool gets_logits() const { return ends() && options.pooled == nullptr; }
  size_t num_logits() const { return gets_logits() ? 1 + taken.num_drafts : 0; }
  // How many of the last rows `pooled` reads.
  size_t num_pooled_rows() const {
    return options.pooled == nullptr ? 0 : options.pooled->NumRows(taken.num_tokens, ends());
  }
};

// What one Forward runs of several sessions. Allocates nothing but in its constructor.
class ScheduledBatch {
 public:
  // With room for what the model takes at most.
  explicit ScheduledBatch(const TokenModel& model);

  void Clear();
  // Works whose hidden states are pooled come before those that get logits, so that a product of
  // the head, which computes rows one behind another, computes none of theirs.
  void Take(ScheduledWork& work, const ScheduledWork::Taken& taken);
  // Takes the single tokens of the works from `first` on, and shares the room for drafts, of which
  // there are at most `max_drafts` in all, between those who have some.
  void TakeSingles(ScheduledWork* first, size_t max_drafts);
  // Runs the batch. The seats of works that get logits then have them, and hidden states that are
  // pooled are added.
  Status Run(TokenModel& model);

  std::span<ScheduledWork* const> works() const { return works_; }
  size_t num_tokens() const { return tokens_.size(); }
  // Tokens of sessions that are decoding, drafts included; the others are parts of prompts.
  size_t num_decoding_tokens() const;

 private:
  std::vector<int32_t> tokens_;
  std::vector<BatchRun> runs_;
  std::vector<ScheduledWork*> works_;
  std::vector<std::span<float>> logits_;
  // What comes first: the works whose hidden states are pooled, and their tokens.
  size_t num_pooled_works_ = 0;
  size_t num_pooled_tokens_ = 0;
};

}  // namespace cria
