#include "llm/mtp_drafter.h"

#include <algorithm>
#include <chrono>

namespace cria {

MtpDrafter::MtpDrafter(Scheduler& scheduler, size_t context_tokens) : scheduler_(scheduler) {
  tokens_.reserve(context_tokens);
}

size_t MtpDrafter::Draft(const DraftTarget& target, std::span<int32_t> draft) {
  const size_t length = target.context.size();
  const size_t room = tokens_.capacity() - std::min(tokens_.capacity(), length);
  draft = draft.first(std::min(draft.size(), room));
  if (draft.empty() || length == 0) return 0;
  struct Guesses {
    DraftedTokens tokens;
    std::span<const int32_t> draft;
  } guesses = {DraftedTokens(target, tokens_, draft), draft};
  const auto begin = scheduler_.Now();
  // A single pointer is captured, because more would be allocated.
  const Status guessed = scheduler_.Guess(
      target.seat, target.context.back(), draft.size(), [&guesses](std::span<float> logits) {
        const bool goes_on = guesses.tokens.Choose(logits).value_or(false);
        return goes_on ? guesses.draft[guesses.tokens.num_chosen() - 1] : -1;
      });
  if (!guessed || guesses.tokens.num_chosen() == 0) return 0;
  const std::chrono::duration<double> time = scheduler_.Now() - begin;
  LearnSeconds(time.count(), guesses.tokens.num_chosen());
  return guesses.tokens.size();
}

}  // namespace cria
