#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/eval/evaluation_summary.h"
#include "cli/eval/token_prediction.h"
#include "cli/plot/chart.h"
#include "model/model_outline.h"
#include "text/tokenizer.h"

namespace cria::cli {

// A token of the text at which the model's prediction is far from the base's.
struct FarToken {
  size_t position = 0;
  std::string text;         // For people: Printable, within quotes.
  double divergence = 0.0;  // Kullback-Leibler, nats.
};

// A model that was compared with a base.
struct ComparedModel {
  std::string name;
  double bits_per_weight = 0.0;
  TextSummary summary;  // It has a base.
  // The largest divergences, the largest first.
  std::vector<FarToken> far_tokens;
};

// The bits that the matrices of products take on average for each weight, scales and padding
// included. A table of embeddings that is not used by a product does not count.
double BitsPerWeight(const ModelOutline& model);

// The `count` predictions, or as many as there are, whose divergence is largest. Of equal ones,
// those that come first in the text.
std::vector<FarToken> FindFarTokens(std::span<const TokenPrediction> predictions,
                                    const Tokenizer& tokenizer, size_t count);

// A picture of the mean divergence over the bits of each model, and of the tokens that each model
// predicts worst. `base` is the base's name.
Figure PlotEvaluation(std::span<const ComparedModel> models, const std::string& base);

}  // namespace cria::cli
