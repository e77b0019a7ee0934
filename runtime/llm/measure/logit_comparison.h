#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"

namespace cria {

// How the predictions of one model differ from another's, over every position of some texts.
struct LogitComparison {
  size_t num_positions = 0;
  size_t num_same_top = 0;        // Where the likeliest token is the same.
  double total_divergence = 0.0;  // Nats, summed over the positions.
  double largest_difference =
      0.0;  // Of two logits of one token at one position; NaN counts as all.

  // Kullback-Leibler divergence from the reference's distribution to the model's, nats a position.
  double mean_divergence() const { return total_divergence / static_cast<double>(num_positions); }
  double same_top() const {
    return static_cast<double>(num_same_top) / static_cast<double>(num_positions);
  }
};

// Runs both models over `tokens`, from an empty context, and adds what differs to `comparison`.
// Tokens past either's context are left out. The models must have one vocabulary.
Status AddComparison(TokenModel& reference, TokenModel& model, std::span<const int32_t> tokens,
                     LogitComparison& comparison);

}  // namespace cria
