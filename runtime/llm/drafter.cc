#include "llm/drafter.h"

#include <cmath>

#include "llm/measure/log_sum_exp.h"

namespace cria {

void Drafter::LearnSeconds(double seconds, size_t num_tokens) {
  seconds /= static_cast<double>(num_tokens);
  seconds_per_token_ += seconds_per_token_ == 0.0 ? seconds : (seconds - seconds_per_token_) / 8.0;
}

DraftedTokens::DraftedTokens(const DraftTarget& target, std::vector<int32_t>& tokens,
                             std::span<int32_t> draft)
    : target_(target), tokens_(tokens), draft_(draft) {
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

}  // namespace cria
