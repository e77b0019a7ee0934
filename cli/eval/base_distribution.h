#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/eval/token_prediction.h"

namespace cria::cli {

// What the base predicts at one position: all of the vocabulary, or its most likely tokens.
struct BaseDistribution {
  // One for each token, in the order of `tokens`. All have the same number added, which log_sum
  // has.
  std::span<const float> log_probabilities;
  double log_sum = 0.0;  // What must be subtracted.
  // The most likely one first; empty: all tokens of the vocabulary, in their order.
  std::span<const uint32_t> tokens;
};

// Fills in the fields that compare `logits`, [vocab_size], with the base, except for the base's
// negative log-likelihood. `log_sum` is LogSumExp(logits). If the base has only its most likely
// tokens, all others count as one, and so the divergence is a lower bound.
void CompareWithBase(const BaseDistribution& base, std::span<const float> logits, double log_sum,
                     TokenPrediction& prediction);

}  // namespace cria::cli
