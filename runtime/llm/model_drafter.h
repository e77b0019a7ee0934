#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "llm/drafter.h"
#include "llm/scheduler.h"

namespace cria {

// Drafts what a second model generates, which has the same vocabulary and takes far less time.
class ModelDrafter final : public Drafter {
 public:
  // Bytes of memory that the constructor allocates.
  static uint64_t MemoryBytes(size_t context_tokens) { return context_tokens * sizeof(int32_t); }
  // `scheduler`, of the draft model, must outlive the object. Contexts have up to `context_tokens`.
  ModelDrafter(Scheduler& scheduler, size_t context_tokens);
  ModelDrafter(const ModelDrafter&) = delete;
  ModelDrafter& operator=(const ModelDrafter&) = delete;
  ~ModelDrafter() override;

  // Has a sequence of its own, and does not use the session's.
  size_t Draft(const DraftTarget& target, std::span<int32_t> draft) override;

 private:
  Result<size_t> Run(const DraftTarget& target, std::span<int32_t> draft);
  // Runs tokens_ up to its end and returns the logits behind them. `num_cached` have been run.
  Result<LogitRows> RunRest(size_t& num_cached);

  Scheduler& scheduler_;
  Seat seat_;
  std::vector<int32_t> tokens_;  // The context and the draft; capacity for the longest context.
};

}  // namespace cria
