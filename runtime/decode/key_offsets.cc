#include "decode/key_offsets.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>

namespace cria {
namespace {

using Turn = std::complex<double>;

// The line with the least squared distance from rope's turns of one pair by 0, 1, ... positions.
struct Line {
  explicit Line(double inverse_frequency) {
    constexpr double kMiddleRow = (kKvPageTokens - 1) / 2.0;
    double squares = 0.0;
    for (size_t position = 0; position < kKvPageTokens; ++position) {
      const double row = static_cast<double>(position) - kMiddleRow;
      const Turn turn = std::polar(1.0, static_cast<double>(position) * inverse_frequency);
      middle += turn;
      slope += row * turn;
      squares += row * row;
    }
    middle /= static_cast<double>(kKvPageTokens);
    slope /= squares;
  }

  Turn middle;
  Turn slope;
};

}  // namespace

bool HasKeyOffsets(const ModelConfig& config, KvType type) {
  // A norm behind the bias makes another key of it for each token. Without rope, scores lack the
  // same number, and a soft cap would change them by different ones.
  return type == KvType::kInt8 && config.qkv_bias && !config.qk_norm && !config.joint_qk_norm &&
         config.attn_logit_softcapping == 0.0f;
}

void FillKeyOffsets(std::span<const double> inverse_frequencies, size_t head_dim,
                    std::span<const float> bias, std::span<float> middles,
                    std::span<float> slopes) {
  const size_t pairs = inverse_frequencies.size();
  std::ranges::copy(bias, middles.begin());
  std::ranges::fill(slopes, 0.0f);
  for (size_t i = 0; i < pairs; ++i) {
    const Line line(inverse_frequencies[i]);
    for (size_t a = i; a < bias.size(); a += head_dim) {
      const size_t b = a + pairs;
      const Turn middle = line.middle * Turn(bias[a], bias[b]);
      const Turn slope = line.slope * Turn(bias[a], bias[b]);
      middles[a] = static_cast<float>(middle.real());
      middles[b] = static_cast<float>(middle.imag());
      slopes[a] = static_cast<float>(slope.real());
      slopes[b] = static_cast<float>(slope.imag());
    }
  }
}

}  // namespace cria
