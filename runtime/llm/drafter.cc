#include "llm/drafter.h"

#include <algorithm>
#include <cmath>

#include "llm/measure/log_sum_exp.h"

namespace cria {

DraftedTokens::DraftedTokens(const DraftTarget& target, std::span<int32_t> draft,
                             std::vector<int32_t>& tokens)
    : target_(target), draft_(draft), tokens_(tokens) {
  tokens_.assign(target.context.begin(), target.context.end());
}

Result<bool> DraftedTokens::Choose(std::span<float> logits) {
  CRIA_ASSIGN_OR_RETURN(const int32_t token, target_.sampler.Peek(logits, tokens_, num_chosen_));
  const float least = target_.min_probability;
  is_likely_ =
      least <= 0.0f || std::exp(logits[static_cast<size_t>(token)] - LogSumExp(logits)) >= least;
  draft_[num_chosen_++] = token;
  if (!is_likely_ || num_chosen_ == draft_.size()) return false;
  tokens_.push_back(token);
  return true;
}

size_t Drafter::Draft(const DraftTarget& target, std::span<int32_t> draft) {
  const size_t length = target.context.size();
  const size_t room = tokens_.capacity() - std::min(tokens_.capacity(), length);
  draft = draft.first(std::min(draft.size(), room));
  if (draft.empty() || length == 0) return 0;
  DraftedTokens drafted(target, draft, tokens_);
  return Run(target, drafted) ? drafted.size() : 0;
}

void Drafter::LearnSeconds(double seconds, size_t num_tokens) {
  seconds /= static_cast<double>(num_tokens);
  seconds_per_token_ += seconds_per_token_ == 0.0 ? seconds : (seconds - seconds_per_token_) / 8.0;
}

}  // namespace cria
