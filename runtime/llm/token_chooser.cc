#include "llm/token_chooser.h"

#include <algorithm>
#include <utility>

#include "llm/measure/log_sum_exp.h"

namespace cria {

size_t TokenChooser::NumCandidates() const {
  const bool needs_all =
      options_.constraint != nullptr || options_.log_probabilities || options_.on_logits != nullptr;
  return needs_all ? 0 : sampler_.NumCandidates();
}

std::span<const int32_t> TokenChooser::Allowed(std::span<const int32_t> drafts,
                                               size_t max_tokens) const {
  // The text would end at a stop token, and what follows it in a draft would be run in vain.
  const auto stop = std::ranges::find_first_of(drafts, options_.stop_token_ids);
  drafts = drafts.first(static_cast<size_t>(stop - drafts.begin()));
  if (options_.constraint == nullptr || drafts.empty()) return drafts;
  return drafts.first(options_.constraint->CountAllowed(drafts, max_tokens));
}

Result<std::optional<int32_t>> TokenChooser::FindForced(size_t max_tokens) const {
  if (options_.constraint == nullptr) return -1;
  CRIA_ASSIGN_OR_RETURN(const Constraint::Next next,
                        options_.constraint->FindNext(options_.stop_token_ids, max_tokens));
  if (next.is_over) return std::nullopt;
  return next.forced;
}

Result<ChosenToken> TokenChooser::Choose(std::span<float> logits, std::span<const int32_t> history,
                                         size_t max_tokens) {
  ChosenToken chosen;
  Constraint::Next next;
  if (options_.constraint != nullptr) {
    CRIA_ASSIGN_OR_RETURN(next, options_.constraint->FindNext(options_.stop_token_ids, max_tokens));
    if (next.is_over) return chosen;
  }
  if (next.forced >= 0) {
    chosen = {{next.forced, 0.0}, /*is_forced=*/true};
  } else {
    const TokenMask* const mask = options_.constraint == nullptr ? nullptr : &next.mask;
    CRIA_ASSIGN_OR_RETURN(const int32_t id, sampler_.Peek(logits, history, num_drawn_++, mask));
    chosen.token = {
        id, options_.log_probabilities ? logits[static_cast<size_t>(id)] - LogSumExp(logits) : 0.0};
  }
  if (options_.on_logits) options_.on_logits(history.size(), logits);
  return chosen;
}

bool TokenChooser::Try(int32_t token) {
  if (options_.constraint == nullptr) return true;
  if (!options_.constraint->Try(token)) return false;
  ++num_tried_;
  return true;
}

void TokenChooser::Rewind() {
  num_drawn_ = 0;
  const size_t num_tried = std::exchange(num_tried_, 0);
  if (options_.constraint != nullptr) options_.constraint->Rewind(num_tried);
}

void TokenChooser::Advance(const ChosenToken& chosen) {
  if (!chosen.is_forced) sampler_.Advance();
}

Status TokenChooser::Accept(int32_t token) {
  return options_.constraint == nullptr ? Status() : options_.constraint->Accept(token);
}

}  // namespace cria
