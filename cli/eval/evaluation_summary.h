#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "cli/eval/token_prediction.h"

namespace cria::cli {

// A mean with its standard error, as if the values were independent.
struct Estimate {
  double mean = 0.0;
  double standard_error = 0.0;
};

// How a model's predictions differ from a base's.
struct BaseSummary {
  Estimate negative_log_likelihood;  // The base's, in nats.
  Estimate difference;               // The model's negative log-likelihood minus the base's.
  Estimate divergence;               // Kullback-Leibler, nats.
  // Percentiles of the divergence: 50, 90, 95, 99 and 99.9.
  double percentiles[5] = {};
  double largest_divergence = 0.0;
  Estimate top1_agreement;  // Fractions of the positions; see TokenPrediction.
  Estimate top5_agreement;
};
inline constexpr double kPercentiles[] = {50.0, 90.0, 95.0, 99.0, 99.9};

struct TextSummary {
  size_t num_predictions = 0;
  Estimate negative_log_likelihood;  // Nats.
  Estimate perplexity;               // Its error follows from that of its logarithm.
  std::optional<BaseSummary> base;
};

// `predictions` must not be empty.
TextSummary SummarizeText(std::span<const TokenPrediction> predictions, bool has_base);

std::string SummaryText(const TextSummary& summary);
nlohmann::ordered_json SummaryJson(const TextSummary& summary);

}  // namespace cria::cli
