#include "llm/mtp_drafter.h"

#include <chrono>

namespace cria {

Status MtpDrafter::Run(const DraftTarget& target, DraftedTokens& drafted) {
  const auto begin = scheduler_.Now();
  // A single pointer is captured, because more would be allocated.
  CRIA_RETURN_IF_ERROR(scheduler_.Guess(
      target.seat, target.context.back(), drafted.max_size(), [&drafted](std::span<float> logits) {
        return drafted.Choose(logits).value_or(false) ? drafted.context().back() : -1;
      }));
  if (drafted.num_chosen() == 0) return {};
  const std::chrono::duration<double> time = scheduler_.Now() - begin;
  LearnSeconds(time.count(), drafted.num_chosen());
  return {};
}

}  // namespace cria
