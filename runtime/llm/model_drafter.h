#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "llm/sampler.h"
#include "llm/scheduler.h"

namespace cria {

// Drafts what a second model generates, which has the same vocabulary and takes far less time. It
// chooses with the random numbers that the target's sampler is going to use (coupling by common
// random numbers), so that both choose the same token more often than two samplers would.
class ModelDrafter {
 public:
  // Bytes of memory that the constructor allocates.
  static uint64_t MemoryBytes(size_t context_tokens) { return context_tokens * sizeof(int32_t); }
  // `scheduler`, of the draft model, must outlive the object. Contexts have up to `context_tokens`.
  ModelDrafter(Scheduler& scheduler, size_t context_tokens);
  ModelDrafter(const ModelDrafter&) = delete;
  ModelDrafter& operator=(const ModelDrafter&) = delete;
  ~ModelDrafter();

  // Writes what could follow `context` to `draft`, and returns the number of tokens: up to the
  // first one that the draft model, without the steps of the sampler, gives a smaller probability
  // than `min_probability`. There are none if the model fails or its context is too short. The
  // state of `sampler` does not change.
  size_t Draft(std::span<const int32_t> context, Sampler& sampler, float min_probability,
               std::span<int32_t> draft);

  // How long a token of a draft takes, learnt from the last ones; 0: not known.
  double seconds_per_token() const { return seconds_per_token_; }

 private:
  Result<size_t> Run(std::span<const int32_t> context, Sampler& sampler, float min_probability,
                     std::span<int32_t> draft);
  // Runs tokens_ up to its end and returns the logits behind them. `num_cached` have been run.
  Result<LogitRows> RunRest(size_t& num_cached);

  Scheduler& scheduler_;
  Seat seat_;
  std::vector<int32_t> tokens_;  // The context and the draft; capacity for the longest context.
  double seconds_per_token_ = 0.0;
};

}  // namespace cria
