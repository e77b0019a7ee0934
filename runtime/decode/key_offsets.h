#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Whether the KV cache subtracts offsets from keys (ops::KeyOffsets): int8 keys with biases, unless
// something behind the bias depends on more than the differences of scores. Some models (Qwen2)
// have biases of keys that are many times as large as what differs between keys, mostly in pairs
// that rope turns slowly. With one scale for all channels of a key, such a bias would leave few
// steps for the others.
bool HasKeyOffsets(const ModelConfig& config, KvType type);

// The line with the least squared distance from rope's turns of a pair of channels, as complex
// numbers, over the positions of the first page.
struct TurnLine {
  // Rope turns the pair by `inverse_frequency` from position to position.
  explicit TurnLine(double inverse_frequency);

  std::complex<double> middle;  // Between the page's two middle rows.
  std::complex<double> slope;   // The change from row to row.
  double distance = 0.0;        // The largest one from the line.
};

// Fills ops::KeyOffsets::middles and slopes, [heads][head_dim], for a bias of the same shape.
// `lines` are those of the pairs; the channels behind the pairs are not turned. A few pairs of each
// head whose bias is far from its line become turned pairs, [heads][kMaxTurnedPairs] or empty, and
// have no line.
void FillKeyOffsets(std::span<const TurnLine> lines, size_t head_dim, std::span<const float> bias,
                    std::span<float> middles, std::span<float> slopes,
                    std::span<ops::TurnedPair> turned_pairs);

// Fills ops::KeyOffsets::row_turns for pairs of these frequencies.
void FillRowTurns(std::span<const double> inverse_frequencies, std::span<float> row_turns);

}  // namespace cria
