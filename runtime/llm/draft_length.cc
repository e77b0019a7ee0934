#include "llm/draft_length.h"

#include <algorithm>

namespace cria {

void Acceptance::Learn(bool is_accepted) {
  constexpr double kMaxCompared = 32.0;
  if (compared_ >= kMaxCompared) {
    accepted_ *= 1.0 - 1.0 / kMaxCompared;
    compared_ *= 1.0 - 1.0 / kMaxCompared;
  }
  compared_ += 1.0;
  accepted_ += is_accepted ? 1.0 : 0.0;
}

size_t BestDraftLength(double acceptance, size_t max_tokens, const DraftCosts& costs) {
  // Without it, nothing says whether drafts pay.
  if (costs.seconds.empty() || costs.seconds[0] <= 0.0) return 0;
  const auto others = static_cast<double>(costs.other_sequences);
  double tokens = 1.0;
  double probability = 1.0;
  size_t best = 0;
  double best_rate = (others + tokens) / costs.seconds[0];
  for (size_t length = 1; length <= std::min(max_tokens, costs.seconds.size() - 1); ++length) {
    probability *= acceptance;
    tokens += probability;
    const double seconds =
        costs.seconds[length] + static_cast<double>(length) * costs.seconds_per_draft;
    const double rate = (others + tokens) / seconds;
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = length;
  }
  return best;
}

}  // namespace cria
