#pragma once

#include <cstdint>

namespace cria::cli {

// How well one token of a text was predicted. The fields behind the second are of a comparison with
// a base model. Files keep it as it is in memory.
struct TokenPrediction {
  int32_t token = 0;
  float negative_log_likelihood = 0.0f;       // Nats.
  float base_negative_log_likelihood = 0.0f;  // Nats.
  // Kullback-Leibler divergence of the model's distribution from the base's, nats.
  float divergence = 0.0f;
  // Whether the token that the base holds for the most likely is the most likely one, and whether
  // it is one of the five most likely.
  uint16_t is_same_top1 = 0;
  uint16_t is_in_top5 = 0;
};

}  // namespace cria::cli
