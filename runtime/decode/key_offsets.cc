#include "decode/key_offsets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cria {
bool HasKeyOffsets(const ModelConfig& config, KvType type) {
  // A norm behind the bias makes another key of it for each token. Without rope, scores lack the
  // same number, and a soft cap would change them by different ones; attn_sinks needs rope.
  return type == KvType::kInt8 && config.qkv_bias && !config.qk_norm && !config.joint_qk_norm &&
         config.attn_logit_softcapping == 0.0f;
}

TurnLine::TurnLine(double inverse_frequency) {
  constexpr double kMiddleRow = (kKvPageTokens - 1) / 2.0;
  double squares = 0.0;
  for (size_t position = 0; position < kKvPageTokens; ++position) {
    const double row = static_cast<double>(position) - kMiddleRow;
    const auto turn = std::polar(1.0, static_cast<double>(position) * inverse_frequency);
    middle += turn;
    slope += row * turn;
    squares += row * row;
  }
  middle /= static_cast<double>(kKvPageTokens);
  slope /= squares;
  for (size_t position = 0; position < kKvPageTokens; ++position) {
    const double row = static_cast<double>(position) - kMiddleRow;
    const auto turn = std::polar(1.0, static_cast<double>(position) * inverse_frequency);
    distance = std::max(distance, std::abs(turn - middle - row * slope));
  }
}

namespace {

// Keys differ from each other by a few times this in trained models.
constexpr double kFarFromLine = 4.0;

// Takes the pairs of one head that are farthest from their lines.
void TurnPairs(std::span<const TurnLine> lines, std::span<float> middles, std::span<float> slopes,
               std::span<const float> bias, std::span<ops::TurnedPair> pairs) {
  const size_t half = lines.size();
  std::ranges::fill(pairs, ops::TurnedPair());
  std::vector<bool> is_taken(half);
  for (ops::TurnedPair& pair : pairs) {
    double farthest = kFarFromLine;
    size_t index = half;
    for (size_t i = 0; i < half; ++i) {
      const double distance = lines[i].distance * std::hypot(bias[i], bias[half + i]);
      if (is_taken[i] || distance <= farthest) continue;
      farthest = distance;
      index = i;
    }
    if (index == half) return;
    is_taken[index] = true;
    pair = {.index = static_cast<uint32_t>(index), .a = bias[index], .b = bias[half + index]};
    for (const size_t channel : {index, half + index}) middles[channel] = slopes[channel] = 0.0f;
  }
}

}  // namespace

void FillKeyOffsets(std::span<const TurnLine> lines, size_t head_dim, std::span<const float> bias,
                    std::span<float> middles, std::span<float> slopes,
                    std::span<ops::TurnedPair> turned_pairs) {
  std::ranges::copy(bias, middles.begin());
  std::ranges::fill(slopes, 0.0f);
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t a = i; a < bias.size(); a += head_dim) {
      const size_t b = a + lines.size();
      const std::complex<double> pair(bias[a], bias[b]);
      const std::complex<double> middle = lines[i].middle * pair;
      const std::complex<double> slope = lines[i].slope * pair;
      middles[a] = static_cast<float>(middle.real());
      middles[b] = static_cast<float>(middle.imag());
      slopes[a] = static_cast<float>(slope.real());
      slopes[b] = static_cast<float>(slope.imag());
    }
  }
  for (size_t head = 0; head < turned_pairs.size() / ops::KeyOffsets::kMaxTurnedPairs; ++head) {
    const auto part = [&](auto all, size_t size) { return all.subspan(head * size, size); };
    TurnPairs(lines, part(middles, head_dim), part(slopes, head_dim), part(bias, head_dim),
              part(turned_pairs, ops::KeyOffsets::kMaxTurnedPairs));
  }
}

void FillRowTurns(std::span<const double> inverse_frequencies, std::span<float> row_turns) {
  for (size_t i = 0; i < inverse_frequencies.size(); ++i) {
    for (size_t row = 0; row < kKvPageTokens; ++row) {
      const double angle = static_cast<double>(row) * inverse_frequencies[i];
      row_turns[2 * i * kKvPageTokens + row] = static_cast<float>(std::cos(angle));
      row_turns[(2 * i + 1) * kKvPageTokens + row] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace cria
