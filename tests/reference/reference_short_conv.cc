#include "reference/reference_short_conv.h"

#include <utility>

#include "reference/reference_math.h"

namespace cria::reference {

ReferenceShortConv::ReferenceShortConv(const ReferenceConfig& config, const std::string& prefix,
                                       const FindTensor& find)
    : config_(config),
      in_proj_(find(prefix + "conv.in_proj.weight", {3 * config.hidden_size, config.hidden_size})),
      conv_(find(prefix + "conv.conv.weight", {config.hidden_size, 1, config.conv_L_cache})),
      out_proj_(find(prefix + "conv.out_proj.weight", {config.hidden_size, config.hidden_size})) {
  if (!config.conv_bias) return;
  in_bias_ = find(prefix + "conv.in_proj.bias", {3 * config.hidden_size});
  conv_bias_ = find(prefix + "conv.conv.bias", {config.hidden_size});
  out_bias_ = find(prefix + "conv.out_proj.bias", {config.hidden_size});
}

// Lfm2ShortConv in transformers: in_proj makes B, C and x; a channel of the output is that of C
// times the sum of the last B * x of the channel, each times its tap. The last tap is the current
// token's, and there is nothing before the first token.
std::vector<double> ReferenceShortConv::Of(const std::vector<double>& normed) {
  const size_t hidden = config_.hidden_size;
  const size_t taps = config_.conv_L_cache;
  const std::vector<double> bcx = MatrixTimesVector(in_proj_, 3 * hidden, normed, in_bias_);
  std::vector<double> gated(hidden);
  for (size_t i = 0; i < hidden; ++i) gated[i] = bcx[i] * bcx[2 * hidden + i];
  gated_.push_back(std::move(gated));
  std::vector<double> output(hidden);
  for (size_t i = 0; i < hidden; ++i) {
    double sum = conv_bias_ == nullptr ? 0.0 : conv_bias_[i];
    for (size_t tap = 0; tap < taps; ++tap) {
      const size_t back = taps - 1 - tap;
      if (back < gated_.size()) sum += conv_[i * taps + tap] * gated_[gated_.size() - 1 - back][i];
    }
    output[i] = bcx[hidden + i] * sum;
  }
  return MatrixTimesVector(out_proj_, hidden, output, out_bias_);
}

}  // namespace cria::reference
