#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria {

// The tokens that a model is calibrated with: windows of equal length, each a text of its own.
struct CalibrationTokens {
  std::vector<int32_t> ids;  // [windows * window_tokens]
  size_t window_tokens = 0;

  size_t num_windows() const { return ids.size() / window_tokens; }
  std::span<const int32_t> Window(size_t index) const {
    return std::span(ids).subspan(index * window_tokens, window_tokens);
  }
  // Every eighth window, and the last one, is held back: it only judges what the others decide.
  bool IsHeldBack(size_t window) const { return window % 8 == 7 || window + 1 == num_windows(); }
};

// Attention sees as much of a text as most tokens of a conversation do.
inline constexpr size_t kMaxCalibrationWindowTokens = 512;

// What a text must give.
struct TextNeeds {
  size_t num_tokens = 256;
  size_t num_windows = 8;  // Windows become shorter for this.
};

// The length of the windows into which `num_tokens` tokens are cut.
size_t CalibrationWindowTokens(const ModelConfig& config, size_t num_tokens,
                               const TextNeeds& needs = {});

// How many tokens give every matrix so many rows for each of its inputs, those of experts on
// average if tokens choose them evenly.
size_t CalibrationTokensFor(const ModelConfig& config, size_t rows_per_input);

// How many tokens to calibrate a model of this configuration with: four rows for each input, and at
// least 16,384 tokens.
size_t UsualCalibrationTokens(const ModelConfig& config);

// Encodes `text` and cuts it into windows, of which it takes up to about `max_tokens` tokens,
// evenly spaced. Each begins with the BOS token if the vocabulary wants it. If the text is JSON
// lines, each is a conversation: a list of messages with `role` and `content`, or an object with
// this list as `messages`, which the template renders. Fails with kUsage if the text is too short.
Result<CalibrationTokens> EncodeCalibrationText(std::string_view text, const ModelConfig& config,
                                                const Tokenizer& tokenizer,
                                                const ChatTemplate& chat_template,
                                                size_t max_tokens, const TextNeeds& needs = {});

}  // namespace cria
