#include "llm/model_drafter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "llm/measure/log_sum_exp.h"

namespace cria {

ModelDrafter::ModelDrafter(Scheduler& scheduler, size_t context_tokens) : scheduler_(scheduler) {
  tokens_.reserve(std::min(context_tokens, scheduler.model().context_tokens()));
}

ModelDrafter::~ModelDrafter() { scheduler_.Leave(seat_); }

size_t ModelDrafter::Draft(std::span<const int32_t> context, Sampler& sampler,
                           float min_probability, std::span<int32_t> draft) {
  // The last token of a draft is not run.
  const size_t room = tokens_.capacity() - std::min(tokens_.capacity(), context.size());
  const Result<size_t> count =
      Run(context, sampler, min_probability, draft.first(std::min(draft.size(), room)));
  scheduler_.End(seat_);
  return count.value_or(0);
}

Result<size_t> ModelDrafter::Run(std::span<const int32_t> context, Sampler& sampler,
                                 float min_probability, std::span<int32_t> draft) {
  if (draft.empty() || context.empty()) return 0;
  CRIA_ASSIGN_OR_RETURN(size_t num_cached,
                        scheduler_.Begin(seat_,
                                         {.tokens = context.first(context.size() - 1),
                                          .reserved_tokens = context.size() + draft.size()},
                                         /*cancel=*/nullptr));
  tokens_.assign(context.begin(), context.end());
  // After an accepted draft, its last token is run again with the next one.
  constexpr size_t kUsualPending = 2;
  const bool is_usual = context.size() - num_cached <= kUsualPending;
  const auto begin = scheduler_.Now();
  size_t count = 0;
  bool is_likely = true;
  while (is_likely && count < draft.size()) {
    CRIA_ASSIGN_OR_RETURN(LogitRows rows, RunRest(num_cached));
    const std::span<float> logits = rows.front();
    CRIA_ASSIGN_OR_RETURN(const int32_t token, sampler.Peek(logits, tokens_, count));
    is_likely = min_probability <= 0.0f ||
                std::exp(logits[static_cast<size_t>(token)] - LogSumExp(logits)) >= min_probability;
    rows.Release();
    draft[count++] = token;
    if (count < draft.size()) tokens_.push_back(token);
  }
  if (is_usual) {
    const std::chrono::duration<double> time = scheduler_.Now() - begin;
    const double seconds = time.count() / static_cast<double>(count);
    seconds_per_token_ +=
        seconds_per_token_ == 0.0 ? seconds : (seconds - seconds_per_token_) / 8.0;
  }
  return is_likely ? count : count - 1;
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
