#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"

namespace cria {

// The difference between two models' predictions, over every position of some texts.
struct LogitComparison {
  size_t num_positions = 0;
  size_t num_same_top = 0;        // Positions where the most likely token is the same.
  double total_divergence = 0.0;  // Nats, summed over the positions.
  // Between logits of one token at one position; infinite for NaN.
  double largest_difference = 0.0;

  // Kullback-Leibler divergence of the model's distribution from the reference's, nats per
  // position.
  double mean_divergence() const { return total_divergence / static_cast<double>(num_positions); }
  double same_top() const {
    return static_cast<double>(num_same_top) / static_cast<double>(num_positions);
  }
};

// Adds the difference between two models' logits at one position, [vocab_size].
void AddPosition(std::span<const float> reference, std::span<const float> logits,
                 LogitComparison& comparison);

// Runs both models over `tokens`, from an empty context, and adds the differences to `comparison`.
// Tokens after the end of the shorter context are left out. The vocabularies must be the same.
Status AddComparison(TokenModel& reference, TokenModel& model, std::span<const int32_t> tokens,
                     LogitComparison& comparison);

}  // namespace cria
