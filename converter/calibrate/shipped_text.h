#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/layer_blocks.h"
#include "model/config.h"
#include "model/tensor_table.h"

namespace cria {

// The text that models are calibrated with if the user gives none: calibration_text.txt, prose and
// verse of several kinds, stories for children, a play, code, conversations, tables and
// mathematics, in several languages. They alternate in short passages, so that a window of tokens
// has two or three kinds.
std::string_view ShippedText();

// How many of its tokens to calibrate a model with: four for each input of its widest matrix, and
// at least 8,192; no more than these for a model of a billion weights, for which more would take
// longer than a quarter of an hour. It has about 40,000 with the vocabulary of a usual model.
inline size_t ShippedTextTokens(const ModelConfig& config) {
  constexpr size_t kLeastShippedTokens = 8192;
  constexpr size_t kMostShippedTokens = 12288;
  constexpr double kAffordableProducts = 8e12;  // Tokens times weights of layers.
  double weights = 0.0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.layer != kNoLayer) weights += WeightsPerToken(config, spec);
  }
  const double affordable = std::min(kAffordableProducts / weights, double{kMostShippedTokens});
  const auto most = std::max(static_cast<size_t>(affordable), kLeastShippedTokens);
  return std::clamp(CalibrationTokensFor(config, 4), kLeastShippedTokens, most);
}
// How many for codes of few bits, which gain most from more tokens.
inline constexpr size_t kShippedTextTokensForFewBits = 16384;

}  // namespace cria
