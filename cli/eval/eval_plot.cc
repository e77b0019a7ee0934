#include "cli/eval/eval_plot.h"

#include <algorithm>
#include <numeric>

#include "cli/plot/axis_scale.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// If the largest of the divergences is so many times the smallest, their axis is logarithmic.
constexpr double kWideRange = 8.0;

Chart DivergenceOverBits(std::span<const ComparedModel> models) {
  Chart chart = {.title = "Mean KL divergence over the size of weights",
                 .x = {.title = "bits per weight of matrices, scales included"},
                 .y = {.title = "mean KL divergence (nats)"},
                 .names_points = true};
  double smallest = models.front().summary.base->divergence.mean;
  double largest = smallest;
  for (const ComparedModel& model : models) {
    const double divergence = model.summary.base->divergence.mean;
    smallest = std::min(smallest, divergence);
    largest = std::max(largest, divergence);
    chart.lines.push_back({.name = model.name, .points = {{model.bits_per_weight, divergence}}});
  }
  if (smallest > 0.0 && largest > kWideRange * smallest) {
    chart.y.scale = AxisScale::kLog2;
  } else {
    chart.y.begins_at_zero = true;
  }
  return chart;
}

}  // namespace

double BitsPerWeight(const ModelOutline& model) {
  uint64_t bytes = 0;
  uint64_t weights = 0;
  for (const TensorLayout& matrix : model.matrices) {
    bytes += matrix.data_bytes() + matrix.scale_bytes();
    weights += uint64_t{matrix.output_channels} * matrix.input_channels;
  }
  return weights == 0 ? 0.0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

std::vector<FarToken> FindFarTokens(std::span<const TokenPrediction> predictions,
                                    const Tokenizer& tokenizer, size_t count) {
  std::vector<size_t> order(predictions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](size_t a, size_t b) {
                              const float first = predictions[a].divergence;
                              const float second = predictions[b].divergence;
                              return first != second ? first > second : a < b;
                            });
  std::vector<FarToken> tokens;
  tokens.reserve(count);
  for (const size_t position : std::span(order).first(count)) {
    const TokenPrediction& prediction = predictions[position];
    tokens.push_back({.position = position,
                      .text = Format("“{}”", Printable(tokenizer.Piece(prediction.token))),
                      .divergence = double{prediction.divergence}});
  }
  return tokens;
}

Figure PlotEvaluation(std::span<const ComparedModel> models, const std::string& base) {
  Figure figure = {.title = "Divergence from " + base, .subtitle = "", .charts = {}};
  if (models.empty()) return figure;
  const auto num_tokens = static_cast<double>(models.front().summary.num_predictions);
  figure.subtitle = Format(
      "{} predicted tokens; bars: the tokens whose predictions differ most, with their positions",
      AxisText(AxisUnit::kNumber, num_tokens));
  figure.charts.push_back(DivergenceOverBits(models));
  double largest = 0.0;
  for (const ComparedModel& model : models) {
    largest = std::max(largest, model.summary.base->largest_divergence);
  }
  for (size_t i = 0; i < models.size(); ++i) {
    Chart chart = {.title = "Worst tokens of " + models[i].name,
                   .x = {.title = "KL divergence (nats)"},
                   .bars_end = largest,
                   .bars_color = i};
    for (const FarToken& token : models[i].far_tokens) {
      chart.bars.push_back(
          {.name = Format("{} at {}", token.text, token.position), .value = token.divergence});
    }
    figure.charts.push_back(std::move(chart));
  }
  return figure;
}

}  // namespace cria::cli
