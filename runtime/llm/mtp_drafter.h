#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "llm/drafter.h"
#include "llm/scheduler.h"

namespace cria {

// Drafts what the model's own layer for multi-token prediction guesses (TokenModel::Guess).
class MtpDrafter final : public Drafter {
 public:
  // Bytes of memory that the constructor allocates.
  static uint64_t MemoryBytes(size_t context_tokens) { return context_tokens * sizeof(int32_t); }
  // `scheduler`, of the model, must outlive the object. Contexts have up to `context_tokens`.
  MtpDrafter(Scheduler& scheduler, size_t context_tokens);

  size_t Draft(const DraftTarget& target, std::span<int32_t> draft) override;

 private:
  Scheduler& scheduler_;
  std::vector<int32_t> tokens_;  // The context and the draft; capacity for the longest context.
};

}  // namespace cria
