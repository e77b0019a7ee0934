#pragma once

#include <cstddef>

#include "cria/error.h"
#include "llm/drafter.h"
#include "llm/scheduler.h"

namespace cria {

// Drafts what a second model generates, which has the same vocabulary and takes far less time. Has
// a sequence of its own, and does not use the session's.
class ModelDrafter final : public Drafter {
 public:
  // `scheduler`, of the draft model, must outlive the object.
  ModelDrafter(Scheduler& scheduler, size_t context_tokens);
  ~ModelDrafter() override;

 private:
  Status Run(const DraftTarget& target, DraftedTokens& drafted) override;
  // Begins to use the sequence; the caller ends it.
  Status Choose(std::span<const int32_t> context, DraftedTokens& drafted);
  // Runs the tokens so far up to their end and returns the logits behind them. `num_cached` have
  // been run.
  Result<LogitRows> RunRest(std::span<const int32_t> tokens, size_t& num_cached);

  Scheduler& scheduler_;
  Seat seat_;
};

}  // namespace cria
