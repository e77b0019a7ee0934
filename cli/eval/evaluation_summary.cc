#include "cli/eval/evaluation_summary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/statistics.h"
#include "core/format.h"

namespace cria::cli {
namespace {

template <typename ValueOf>
std::vector<double> Values(std::span<const TokenPrediction> predictions, ValueOf value_of) {
  std::vector<double> values;
  values.reserve(predictions.size());
  for (const TokenPrediction& each : predictions) values.push_back(double{value_of(each)});
  return values;
}

template <typename ValueOf>
Estimate EstimateOf(std::span<const TokenPrediction> predictions, ValueOf value_of) {
  const std::vector<double> values = Values(predictions, value_of);
  return {.mean = Mean(values), .standard_error = StandardError(values)};
}

BaseSummary SummarizeBase(std::span<const TokenPrediction> predictions) {
  BaseSummary base;
  base.negative_log_likelihood = EstimateOf(
      predictions, [](const TokenPrediction& each) { return each.base_negative_log_likelihood; });
  base.difference = EstimateOf(predictions, [](const TokenPrediction& each) {
    return each.negative_log_likelihood - each.base_negative_log_likelihood;
  });
  base.top1_agreement = EstimateOf(predictions, [](const TokenPrediction& each) {
    return static_cast<float>(each.is_same_top1);
  });
  base.top5_agreement = EstimateOf(
      predictions, [](const TokenPrediction& each) { return static_cast<float>(each.is_in_top5); });
  std::vector<double> divergences =
      Values(predictions, [](const TokenPrediction& each) { return each.divergence; });
  base.divergence = {.mean = Mean(divergences), .standard_error = StandardError(divergences)};
  std::ranges::sort(divergences);
  for (size_t i = 0; i < std::size(kPercentiles); ++i) {
    base.percentiles[i] = Percentile(divergences, kPercentiles[i] / 100.0);
  }
  base.largest_divergence = divergences.back();
  return base;
}

}  // namespace

TextSummary SummarizeText(std::span<const TokenPrediction> predictions, bool has_base) {
  TextSummary summary;
  summary.num_predictions = predictions.size();
  summary.negative_log_likelihood = EstimateOf(
      predictions, [](const TokenPrediction& each) { return each.negative_log_likelihood; });
  const double perplexity = std::exp(summary.negative_log_likelihood.mean);
  summary.perplexity = {
      .mean = perplexity,
      .standard_error = perplexity * summary.negative_log_likelihood.standard_error};
  if (has_base) summary.base = SummarizeBase(predictions);
  return summary;
}

std::string SummaryText(const TextSummary& summary) {
  const auto estimate = [](const Estimate& value, double factor = 1.0) {
    return Format("{:.4f} ± {:.4f}", factor * value.mean, factor * value.standard_error);
  };
  std::string text = Format("predicted tokens: {}\n", summary.num_predictions);
  text += Format("negative log-likelihood: {} nats per token\n",
                 estimate(summary.negative_log_likelihood));
  text += Format("perplexity: {}\n", estimate(summary.perplexity));
  if (!summary.base) return text;
  const BaseSummary& base = *summary.base;
  text += Format("the base's negative log-likelihood: {}; the difference: {:.5f} ± {:.5f}\n",
                 estimate(base.negative_log_likelihood), base.difference.mean,
                 base.difference.standard_error);
  text += Format("KL divergence from the base: {:.5f} ± {:.5f} nats\n", base.divergence.mean,
                 base.divergence.standard_error);
  text += "  percentiles:";
  for (size_t i = 0; i < std::size(kPercentiles); ++i) {
    text += Format(" {}% {:.5f},", kPercentiles[i], base.percentiles[i]);
  }
  text += Format(" largest {:.5f}\n", base.largest_divergence);
  text += Format("the same most likely token: {}%\n", estimate(base.top1_agreement, 100.0));
  text += Format("the base's most likely token is among the first five: {}%\n",
                 estimate(base.top5_agreement, 100.0));
  return text;
}

nlohmann::ordered_json SummaryJson(const TextSummary& summary) {
  nlohmann::ordered_json json = {
      {"tokens", summary.num_predictions},
      {"mean_negative_log_likelihood", summary.negative_log_likelihood.mean},
      {"negative_log_likelihood_standard_error", summary.negative_log_likelihood.standard_error},
      {"perplexity", summary.perplexity.mean},
      {"perplexity_standard_error", summary.perplexity.standard_error}};
  if (!summary.base) return json;
  const BaseSummary& base = *summary.base;
  json["base_mean_negative_log_likelihood"] = base.negative_log_likelihood.mean;
  json["nll_difference"] = base.difference.mean;
  json["nll_difference_standard_error"] = base.difference.standard_error;
  json["mean_kl"] = base.divergence.mean;
  json["kl_standard_error"] = base.divergence.standard_error;
  for (size_t i = 0; i < std::size(kPercentiles); ++i) {
    json["kl_percentiles"][Format("{}", kPercentiles[i])] = base.percentiles[i];
  }
  json["largest_kl"] = base.largest_divergence;
  json["top1_agreement"] = base.top1_agreement.mean;
  json["top1_agreement_standard_error"] = base.top1_agreement.standard_error;
  json["top5_agreement"] = base.top5_agreement.mean;
  json["top5_agreement_standard_error"] = base.top5_agreement.standard_error;
  return json;
}

}  // namespace cria::cli
