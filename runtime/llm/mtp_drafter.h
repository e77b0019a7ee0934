#pragma once

#include <cstddef>

#include "llm/drafter.h"
#include "llm/scheduler.h"

namespace cria {

// Drafts what the model's own layer for multi-token prediction guesses (TokenModel::Guess).
class MtpDrafter final : public Drafter {
 public:
  // `scheduler`, of the model, must outlive the object.
  MtpDrafter(Scheduler& scheduler, size_t context_tokens)
      : Drafter(context_tokens), scheduler_(scheduler) {}

 private:
  Status Run(const DraftTarget& target, DraftedTokens& drafted) override;

  Scheduler& scheduler_;
};

}  // namespace cria
