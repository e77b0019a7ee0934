#include "converter/calibrate/mamba_steps.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "converter/calibrate/exponential.h"
#include "core/numeric.h"

namespace cria {
namespace {

class MambaRows {
 public:
  MambaRows(const ModelConfig& config, const MambaWeights& weights, size_t window_tokens,
            ConstMatrixView projected, ConstMatrixView steps, MatrixView output)
      : config_(config),
        weights_(weights),
        window_tokens_(window_tokens),
        channels_(config.mamba_channels()),
        projected_(projected),
        steps_(steps),
        output_(output),
        convolved_(projected.rows, config.mamba_conv_channels()) {}

  void Run(const ThreadPool& threads) {
    threads.ParallelFor(projected_.rows, [&](size_t row) { Convolve(row); });
    const size_t heads = config_.mamba_n_heads;
    threads.ParallelFor(DivideRoundingUp(projected_.rows, window_tokens_) * heads,
                        [&](size_t index) { RunHead(index / heads, index % heads); });
    threads.ParallelFor(projected_.rows, [&](size_t row) { Gate(row); });
  }

 private:
  // What the product and its bias make of a row's channel.
  float Projected(size_t row, size_t channel) const {
    const float product = projected_.row(row)[channel];
    return weights_.in_bias.empty() ? product : product + weights_.in_bias[channel];
  }

  void Convolve(size_t row) {
    const size_t channels = config_.mamba_conv_channels();
    const size_t num_taps = config_.mamba_d_conv;
    const std::span<float> out = convolved_.view().row(row);
    std::ranges::fill(out, 0.0f);
    if (!weights_.conv_bias.empty()) std::ranges::copy(weights_.conv_bias, out.begin());
    const size_t num_seen = std::min(num_taps, row % window_tokens_ + 1);
    for (size_t back = 0; back < num_seen; ++back) {
      const float* const tap = weights_.taps.data() + (num_taps - 1 - back) * channels;
      for (size_t i = 0; i < channels; ++i) out[i] += tap[i] * Projected(row - back, channels_ + i);
    }
    for (float& x : out) x *= Sigmoid(x);
  }

  float StepOf(size_t row, size_t head) const {
    float step = steps_.row(row)[head] + weights_.dt_bias[head];
    if (!weights_.in_bias.empty()) step += weights_.in_bias[config_.mamba_in_channels() + head];
    return Softplus(step);
  }

  void RunHead(size_t window, size_t head) {
    const size_t key_dim = config_.mamba_d_state;
    const size_t value_dim = config_.mamba_d_head;
    const size_t group = head / (config_.mamba_n_heads / config_.mamba_n_groups);
    Matrix state(key_dim, value_dim);
    const size_t end = std::min(projected_.rows, (window + 1) * window_tokens_);
    for (size_t row = window * window_tokens_; row < end; ++row) {
      const std::span<const float> all = convolved_.view().row(row);
      const auto value = all.subspan(head * value_dim, value_dim);
      const auto key = all.subspan(channels_ + group * key_dim, key_dim);
      const auto query =
          all.subspan(channels_ + config_.mamba_key_channels() + group * key_dim, key_dim);
      const float step = StepOf(row, head);
      const float decay = Exponential(std::min(0.0f, -weights_.decay_rates[head] * step));
      const std::span<float> read = output_.row(row).subspan(head * value_dim, value_dim);
      for (size_t j = 0; j < value_dim; ++j) read[j] = weights_.direct[head] * value[j];
      for (size_t i = 0; i < key_dim; ++i) {
        const std::span<float> of_key = state.view().row(i);
        for (size_t j = 0; j < value_dim; ++j) {
          of_key[j] = decay * of_key[j] + key[i] * (step * value[j]);
          read[j] += query[i] * of_key[j];
        }
      }
    }
  }

  void Gate(size_t row) const {
    const std::span<float> read = output_.row(row);
    for (size_t i = 0; i < channels_; ++i) {
      const float gate = Projected(row, i);
      read[i] *= gate * Sigmoid(gate);
    }
    const size_t size = channels_ / config_.mamba_n_groups;
    for (size_t first = 0; first < channels_; first += size) {
      double mean = 0.0;
      for (const float x : read.subspan(first, size)) mean += double{x} * x;
      mean /= static_cast<double>(size);
      const auto scale = static_cast<float>(1.0 / std::sqrt(mean + double{config_.rms_norm_eps}));
      for (size_t i = first; i < first + size; ++i) read[i] *= scale * weights_.norm[i];
    }
  }

  const ModelConfig& config_;
  const MambaWeights& weights_;
  const size_t window_tokens_;
  const size_t channels_;
  const ConstMatrixView projected_;
  const ConstMatrixView steps_;
  const MatrixView output_;
  Matrix convolved_;  // [rows, mamba_conv_channels]
};

}  // namespace

void RunMamba(const ThreadPool& threads, const ModelConfig& config, const MambaWeights& weights,
              size_t window_tokens, ConstMatrixView projected, ConstMatrixView steps,
              MatrixView output) {
  MambaRows(config, weights, window_tokens, projected, steps, output).Run(threads);
}

}  // namespace cria
