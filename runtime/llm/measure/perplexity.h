#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"

namespace cria {

struct Perplexity {
  double mean_negative_log_likelihood = 0.0;  // Nats per predicted token.
  size_t predicted_tokens = 0;
};

// How well the model predicts `tokens` in TextWindows. After each window, `on_progress` is called
// with the number of predicted tokens and the mean so far.
Result<Perplexity> MeasurePerplexity(TokenModel& model, std::span<const int32_t> tokens,
                                     int32_t bos_token_id, size_t window_tokens,
                                     const std::function<void(const Perplexity&)>& on_progress);

}  // namespace cria
