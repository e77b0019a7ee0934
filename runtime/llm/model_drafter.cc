#include "llm/model_drafter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cria {

ModelDrafter::ModelDrafter(Scheduler& scheduler, size_t context_tokens) : scheduler_(scheduler) {
  tokens_.reserve(std::min(context_tokens, scheduler.model().context_tokens()));
}

ModelDrafter::~ModelDrafter() { scheduler_.Leave(seat_); }

size_t ModelDrafter::Draft(const DraftTarget& target, std::span<int32_t> draft) {
  // The last token of a draft is not run.
  const size_t room = tokens_.capacity() - std::min(tokens_.capacity(), target.context.size());
  const Result<size_t> count = Run(target, draft.first(std::min(draft.size(), room)));
  scheduler_.End(seat_);
  return count.value_or(0);
}

Result<size_t> ModelDrafter::Run(const DraftTarget& target, std::span<int32_t> draft) {
  const std::span<const int32_t> context = target.context;
  if (draft.empty() || context.empty()) return 0;
  CRIA_ASSIGN_OR_RETURN(size_t num_cached,
                        scheduler_.Begin(seat_,
                                         {.tokens = context.first(context.size() - 1),
                                          .reserved_tokens = context.size() + draft.size()},
                                         /*cancel=*/nullptr));
  DraftedTokens drafted(target, tokens_, draft);
  // After an accepted draft, its last token is run again with the next one.
  constexpr size_t kUsualPending = 2;
  const bool is_usual = context.size() - num_cached <= kUsualPending;
  const auto begin = scheduler_.Now();
  for (bool goes_on = true; goes_on;) {
    CRIA_ASSIGN_OR_RETURN(LogitRows rows, RunRest(num_cached));
    CRIA_ASSIGN_OR_RETURN(goes_on, drafted.Choose(rows.front()));
    rows.Release();
  }
  if (is_usual) {
    const std::chrono::duration<double> time = scheduler_.Now() - begin;
    LearnSeconds(time.count(), drafted.num_chosen());
  }
  return drafted.size();
}

Result<LogitRows> ModelDrafter::RunRest(size_t& num_cached) {
  while (true) {
    CRIA_ASSIGN_OR_RETURN(Scheduler::Progress progress,
                          scheduler_.Run(seat_, std::span(tokens_).subspan(num_cached)));
    num_cached += progress.num_tokens;
    if (num_cached == tokens_.size()) return std::move(progress.logits);
  }
}

}  // namespace cria
