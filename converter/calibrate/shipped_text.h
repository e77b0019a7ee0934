#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "converter/calibrate/calibration_text.h"
#include "model/config.h"

namespace cria {

// The text that models are calibrated with if the user gives none: calibration_text.txt, prose and
// verse of several kinds, stories for children, a play, code, conversations, tables and
// mathematics, in several languages. They alternate in short passages, so that a window of tokens
// has two or three kinds.
std::string_view ShippedText();

// Codes of few bits gain most from a longer text.
enum class ShippedTextLength : uint8_t { kUsual, kLong };

// How many of its tokens to calibrate a model with: usually four for each input of its widest
// matrix, from 8,192 to 12,288, and 16,384 of a long text. It has about 40,000 with the vocabulary
// of a usual model.
inline size_t ShippedTextTokens(const ModelConfig& config,
                                ShippedTextLength length = ShippedTextLength::kUsual) {
  constexpr size_t kLeastUsualTokens = 8192;
  constexpr size_t kMostUsualTokens = 12288;
  constexpr size_t kLongTokens = 16384;
  if (length == ShippedTextLength::kLong) return kLongTokens;
  return std::clamp(CalibrationTokensFor(config, 4), kLeastUsualTokens, kMostUsualTokens);
}

}  // namespace cria
