#include "cli/eval/base_distribution.h"

#include <algorithm>
#include <cmath>

#include "ops/vector.h"

namespace cria::cli {
namespace {

constexpr ptrdiff_t kTopTokens = 5;

double Divergence(const BaseDistribution& base, std::span<const float> logits, double log_sum) {
  double divergence = 0.0;
  double rest = 1.0;  // Probability of the tokens that the base does not have.
  double model_rest = 1.0;
  for (size_t i = 0; i < base.log_probabilities.size(); ++i) {
    const double expected = double{base.log_probabilities[i]} - base.log_sum;
    const double probability = std::exp(expected);
    const double actual = double{logits[base.tokens.empty() ? i : base.tokens[i]]} - log_sum;
    if (probability > 0.0) divergence += probability * (expected - actual);
    rest -= probability;
    model_rest -= std::exp(actual);
  }
  const bool has_rest = !base.tokens.empty() && rest > 0.0 && model_rest > 0.0;
  if (has_rest) divergence += rest * std::log(rest / model_rest);
  return divergence;
}

}  // namespace

void CompareWithBase(const BaseDistribution& base, std::span<const float> logits, double log_sum,
                     TokenPrediction& prediction) {
  prediction.divergence = static_cast<float>(Divergence(base, logits, log_sum));
  const size_t top = base.tokens.empty()
                         ? ops::ArgMax(base.log_probabilities.data(), base.log_probabilities.size())
                         : base.tokens[0];
  const float logit = logits[top];
  const auto num_above = std::ranges::count_if(logits, [&](float each) { return each > logit; });
  prediction.is_same_top1 = ops::ArgMax(logits.data(), logits.size()) == top ? 1 : 0;
  prediction.is_in_top5 = num_above < kTopTokens ? 1 : 0;
}

}  // namespace cria::cli
