#include "decode/key_offsets.h"

#include <algorithm>

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
}

void FillKeyOffsets(std::span<const TurnLine> lines, size_t head_dim, std::span<const float> bias,
                    std::span<float> middles, std::span<float> slopes) {
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
}

}  // namespace cria
