#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/token_model.h"
#include "llm/seat.h"

namespace cria {

// A call of Scheduler::Run, which is in the stack of its thread until it is done.
struct ScheduledWork {
  Seat& seat;
  std::span<const int32_t> tokens;
  std::span<const int32_t> drafts;
  size_t num_candidates = 0;
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
  bool gets_logits() const { return taken.num_tokens == tokens.size(); }
  size_t num_logits() const { return gets_logits() ? 1 + taken.num_drafts : 0; }
};

// What one Forward runs of several sessions. Allocates nothing but in its constructor.
class ScheduledBatch {
 public:
  // With room for what the model takes at most.
  explicit ScheduledBatch(const TokenModel& model);

  void Clear();
  void Take(ScheduledWork& work, const ScheduledWork::Taken& taken);
  // Takes the single tokens of the works from `first` on, and shares the room for drafts, of which
  // there are at most `max_drafts` in all, between those who have some.
  void TakeSingles(ScheduledWork* first, size_t max_drafts);
  // Runs the batch. The seats of works that get logits then have them.
  Status Run(TokenModel& model);

  std::span<ScheduledWork* const> works() const { return works_; }
  size_t num_tokens() const { return tokens_.size(); }
  // Whether it has more than single tokens and drafts.
  bool has_prompt() const;

 private:
  std::vector<int32_t> tokens_;
  std::vector<BatchRun> runs_;
  std::vector<ScheduledWork*> works_;
  std::vector<std::span<float>> logits_;
};

}  // namespace cria
