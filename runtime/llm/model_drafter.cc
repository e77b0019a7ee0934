#include "llm/model_drafter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cria {

ModelDrafter::ModelDrafter(Scheduler& scheduler, size_t context_tokens)
    : Drafter(std::min(context_tokens, scheduler.model().context_tokens())),
      scheduler_(scheduler) {}

ModelDrafter::~ModelDrafter() { scheduler_.Leave(seat_); }

Status ModelDrafter::Run(const DraftTarget& target, DraftedTokens& drafted) {
  Status status = Choose(target.context, drafted);
  scheduler_.End(seat_);
  return status;
}

Status ModelDrafter::Choose(std::span<const int32_t> context, DraftedTokens& drafted) {
  CRIA_ASSIGN_OR_RETURN(size_t num_cached,
                        scheduler_.Begin(seat_,
                                         {.tokens = context.first(context.size() - 1),
                                          .reserved_tokens = context.size() + drafted.max_size()},
                                         /*cancel=*/nullptr));
  // After an accepted draft, its last token is run again with the next one.
  constexpr size_t kUsualPending = 2;
  const bool is_usual = context.size() - num_cached <= kUsualPending;
  const auto begin = scheduler_.Now();
  for (bool goes_on = true; goes_on;) {
    CRIA_ASSIGN_OR_RETURN(LogitRows rows, RunRest(drafted.context(), num_cached));
    CRIA_ASSIGN_OR_RETURN(goes_on, drafted.Choose(rows.front()));
    rows.Release();
  }
  if (is_usual) {
    const std::chrono::duration<double> time = scheduler_.Now() - begin;
    LearnSeconds(time.count(), drafted.num_chosen());
  }
  return {};
}

Result<LogitRows> ModelDrafter::RunRest(std::span<const int32_t> tokens, size_t& num_cached) {
  while (true) {
    CRIA_ASSIGN_OR_RETURN(Scheduler::Progress progress,
                          scheduler_.Run(seat_, tokens.subspan(num_cached)));
    num_cached += progress.num_tokens;
    if (num_cached == tokens.size()) return std::move(progress.logits);
  }
}

}  // namespace cria
