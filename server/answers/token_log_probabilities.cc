#include "server/answers/token_log_probabilities.h"

#include <algorithm>

#include "llm/measure/log_sum_exp.h"

namespace cria::server {

void TokenLogProbabilities::Add(size_t position, std::span<const float> logits) {
  // Drafts that were not accepted had later places.
  while (!places_.empty() && places_.back().position >= position) places_.pop_back();
  MostLikely best;
  best.reserve(count_ + 1);
  for (size_t id = 0; id < logits.size(); ++id) {
    const double logit = logits[id];
    if (best.size() == count_ && logit <= best.back().second) continue;
    const auto place = std::ranges::find_if(best, [&](const auto& b) { return b.second < logit; });
    best.insert(place, {static_cast<int32_t>(id), logit});
    if (best.size() > count_) best.pop_back();
  }
  const double sum = LogSumExp(logits);
  for (auto& [id, logit] : best) logit -= sum;
  places_.push_back({position, std::move(best)});
}

TokenLogProbabilities::MostLikely TokenLogProbabilities::Take(size_t position) {
  while (!places_.empty() && places_.front().position < position) places_.pop_front();
  if (places_.empty() || places_.front().position != position) return {};
  MostLikely best = std::move(places_.front().most_likely);
  places_.pop_front();
  return best;
}

}  // namespace cria::server
