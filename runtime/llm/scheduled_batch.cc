#include "llm/scheduled_batch.h"

#include <algorithm>

namespace cria {

ScheduledBatch::ScheduledBatch(const TokenModel& model) {
  tokens_.reserve(model.chunk_tokens());
  runs_.reserve(model.max_sequences());
  works_.reserve(model.max_sequences());
  logits_.reserve(model.max_logit_rows());
}

void ScheduledBatch::Clear() {
  tokens_.clear();
  runs_.clear();
  works_.clear();
  logits_.clear();
}

void ScheduledBatch::Take(ScheduledWork& work, const ScheduledWork::Taken& taken) {
  const SequenceSlots::Holder& holder = work.seat.holder_;
  const auto tokens = work.tokens.first(taken.num_tokens);
  const auto drafts = work.drafts.first(taken.num_drafts);
  work.taken = taken;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
  runs_.push_back({.sequence = SequenceSlots::Sequence(holder),
                   .first_position = SequenceSlots::Tokens(holder).size(),
                   .num_tokens = tokens.size() + drafts.size(),
                   .num_logits = work.num_logits(),
                   .num_candidates = work.num_candidates});
  works_.push_back(&work);
}

void ScheduledBatch::TakeSingles(ScheduledWork* first, size_t max_drafts) {
  const auto has_drafts = [](const ScheduledWork& work) {
    return work.is_single() && !work.drafts.empty();
  };
  size_t num_drafting = 0;
  for (const ScheduledWork* work = first; work != nullptr; work = work->next) {
    num_drafting += has_drafts(*work) ? 1 : 0;
  }
  // Each sequence keeps a row of logits, and so the chunk keeps a row for each prompt.
  size_t room = max_drafts;
  for (ScheduledWork* work = first; work != nullptr; work = work->next) {
    if (!work->is_single()) continue;
    ScheduledWork::Taken taken = {.num_tokens = 1};
    if (num_drafting > 0 && has_drafts(*work)) {
      taken.num_drafts = std::min(work->drafts.size(), room / num_drafting);
      --num_drafting;
    }
    room -= taken.num_drafts;
    Take(*work, taken);
  }
}

Status ScheduledBatch::Run(TokenModel& model) {
  CRIA_RETURN_IF_ERROR(model.Forward({tokens_, runs_}));
  for (const ScheduledWork* const work : works_) {
    const size_t first = logits_.size();
    for (size_t i = 0; i < work->num_logits(); ++i) {
      CRIA_ASSIGN_OR_RETURN(const std::span<float> row, model.Logits(logits_.size()));
      logits_.push_back(row);
    }
    work->seat.logits_ = std::span(logits_).subspan(first);
  }
  return {};
}

bool ScheduledBatch::has_prompt() const {
  return std::ranges::any_of(works_, [](const ScheduledWork* work) { return !work->is_single(); });
}

}  // namespace cria
