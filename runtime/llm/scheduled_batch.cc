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
  num_pooled_works_ = num_pooled_tokens_ = 0;
}

void ScheduledBatch::Take(ScheduledWork& work, const ScheduledWork::Taken& taken) {
  const SequenceSlots::Holder& holder = work.seat.holder_;
  const auto tokens = work.tokens.first(taken.num_tokens);
  const auto drafts = work.options.drafts.first(taken.num_drafts);
  work.taken = taken;
  const BatchRun run = {.sequence = SequenceSlots::Sequence(holder),
                        .first_position = SequenceSlots::Tokens(holder).size(),
                        .num_tokens = tokens.size() + drafts.size(),
                        .num_logits = work.num_logits() + work.num_pooled_rows(),
                        .num_candidates = work.options.num_candidates};
  if (work.options.pooled == nullptr) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
    runs_.push_back(run);
    works_.push_back(&work);
    return;
  }
  tokens_.insert(tokens_.begin() + static_cast<ptrdiff_t>(num_pooled_tokens_), tokens.begin(),
                 tokens.end());
  const auto place = static_cast<ptrdiff_t>(num_pooled_works_);
  runs_.insert(runs_.begin() + place, run);
  works_.insert(works_.begin() + place, &work);
  num_pooled_tokens_ += tokens.size();
  ++num_pooled_works_;
}

void ScheduledBatch::TakeSingles(ScheduledWork* first, size_t max_drafts) {
  const auto has_drafts = [](const ScheduledWork& work) {
    return work.is_single() && !work.options.drafts.empty();
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
      taken.num_drafts = std::min(work->options.drafts.size(), room / num_drafting);
      --num_drafting;
    }
    room -= taken.num_drafts;
    Take(*work, taken);
  }
}

Status ScheduledBatch::Run(TokenModel& model) {
  CRIA_RETURN_IF_ERROR(model.Forward({tokens_, runs_}));
  size_t next_row = 0;
  for (const ScheduledWork* const work : works_) {
    next_row += work->num_pooled_rows();
    const size_t first = logits_.size();
    for (size_t i = 0; i < work->num_logits(); ++i) {
      CRIA_ASSIGN_OR_RETURN(const std::span<float> row, model.Logits(next_row++));
      logits_.push_back(row);
    }
    work->seat.logits_ = std::span(logits_).subspan(first);
  }
  // Comes last, because works are run again if something fails.
  next_row = 0;
  for (const ScheduledWork* const work : std::span(works_).first(num_pooled_works_)) {
    for (size_t i = 0; i < work->num_pooled_rows(); ++i) {
      CRIA_ASSIGN_OR_RETURN(const std::span<const float> hidden, model.LastHiddenState(next_row++));
      work->options.pooled->Add(hidden);
    }
  }
  return {};
}

size_t ScheduledBatch::num_decoding_tokens() const {
  size_t count = 0;
  for (const ScheduledWork* const work : works_) {
    if (work->is_decoding()) count += work->taken.num_tokens + work->taken.num_drafts;
  }
  return count;
}

}  // namespace cria
