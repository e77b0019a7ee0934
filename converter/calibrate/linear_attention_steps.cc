#include "converter/calibrate/linear_attention_steps.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"
#include "core/numeric.h"

namespace cria {
namespace {

// Makes the sum of squares 1, but for what keeps zeros, and multiplies by `factor`.
void NormalizeHead(std::span<float> head, float factor) {
  double sum = 1e-6;
  for (const float x : head) sum += double{x} * x;
  const auto scale = static_cast<float>(double{factor} / std::sqrt(sum));
  for (float& x : head) x *= scale;
}

class LinearAttention {
 public:
  LinearAttention(const ModelConfig& config, const LinearAttentionWeights& weights,
                  size_t window_tokens, ConstMatrixView projected, ConstMatrixView gates,
                  MatrixView output)
      : config_(config),
        weights_(weights),
        window_tokens_(window_tokens),
        projected_(projected),
        gates_(gates),
        output_(output),
        convolved_(projected.rows, config.linear_conv_channels()) {}

  void Run(const ThreadPool& threads) {
    threads.ParallelFor(projected_.rows, [&](size_t row) { Convolve(row); });
    const size_t heads = config_.linear_num_value_heads;
    threads.ParallelFor(DivideRoundingUp(projected_.rows, window_tokens_) * heads,
                        [&](size_t index) { RunHead(index / heads, index % heads); });
  }

 private:
  void Convolve(size_t row) {
    const size_t channels = config_.linear_conv_channels();
    const size_t num_taps = config_.linear_conv_kernel_dim;
    const std::span<float> out = convolved_.view().row(row);
    std::ranges::fill(out, 0.0f);
    const size_t num_seen = std::min(num_taps, row % window_tokens_ + 1);
    for (size_t back = 0; back < num_seen; ++back) {
      const float* const tap = weights_.taps.data() + (num_taps - 1 - back) * channels;
      const std::span<const float> seen = projected_.row(row - back);
      for (size_t i = 0; i < channels; ++i) out[i] += tap[i] * seen[i];
    }
    for (float& x : out) x *= Sigmoid(x);
    const size_t key_dim = config_.linear_key_head_dim;
    const float root = std::sqrt(static_cast<float>(key_dim));
    for (size_t i = 0; i < 2 * size_t{config_.linear_num_key_heads}; ++i) {
      // Queries are before keys.
      NormalizeHead(out.subspan(i * key_dim, key_dim),
                    i < config_.linear_num_key_heads ? 1.0f / root : 1.0f);
    }
  }

  size_t KeyHeadOf(size_t head) const {
    const size_t key_heads = config_.linear_num_key_heads;
    return config_.linear_tiled_value_heads ? head % key_heads
                                            : head / (config_.linear_num_value_heads / key_heads);
  }

  void RunHead(size_t window, size_t head) {
    const size_t key_dim = config_.linear_key_head_dim;
    const size_t value_dim = config_.linear_value_head_dim;
    const size_t key_head = KeyHeadOf(head);
    Matrix state(key_dim, value_dim);
    std::vector<float> delta(value_dim);
    const size_t end = std::min(projected_.rows, (window + 1) * window_tokens_);
    for (size_t row = window * window_tokens_; row < end; ++row) {
      const std::span<const float> out = convolved_.view().row(row);
      const auto query = out.subspan(key_head * key_dim, key_dim);
      const auto key = out.subspan(config_.linear_key_channels() + key_head * key_dim, key_dim);
      const auto value =
          out.subspan(2 * config_.linear_key_channels() + head * value_dim, value_dim);
      const float decay = Exponential(
          std::min(0.0f, -weights_.decay_rates[head] * Softplus(DecayInput(row, head))));
      for (float& x : state.values()) x *= decay;
      std::ranges::fill(delta, 0.0f);
      AddRows(key, state, delta);
      const float beta = Sigmoid(gates_.row(row)[head]);
      for (size_t i = 0; i < value_dim; ++i) delta[i] = beta * (value[i] - delta[i]);
      for (size_t i = 0; i < key_dim; ++i) {
        const std::span<float> of_key = state.view().row(i);
        for (size_t j = 0; j < value_dim; ++j) of_key[j] += key[i] * delta[j];
      }
      const std::span<float> read = output_.row(row).subspan(head * value_dim, value_dim);
      std::ranges::fill(read, 0.0f);
      AddRows(query, state, read);
      Gate(row, head, read);
    }
  }

  float DecayInput(size_t row, size_t head) const {
    return gates_.row(row)[config_.linear_num_value_heads + head] + weights_.dt_bias[head];
  }

  // Adds the sum of the state's rows, each times its factor.
  static void AddRows(std::span<const float> factors, Matrix& state, std::span<float> sums) {
    for (size_t i = 0; i < factors.size(); ++i) {
      const std::span<const float> row = state.view().row(i);
      for (size_t j = 0; j < sums.size(); ++j) sums[j] += factors[i] * row[j];
    }
  }

  void Gate(size_t row, size_t head, std::span<float> read) const {
    double mean = 0.0;
    for (const float x : read) mean += double{x} * x;
    mean /= static_cast<double>(read.size());
    const auto scale = static_cast<float>(1.0 / std::sqrt(mean + double{config_.rms_norm_eps}));
    const std::span<const float> gate = projected_.row(row).subspan(
        config_.linear_conv_channels() + head * read.size(), read.size());
    for (size_t i = 0; i < read.size(); ++i) {
      read[i] *= scale * weights_.norm[i] * gate[i] * Sigmoid(gate[i]);
    }
  }

  const ModelConfig& config_;
  const LinearAttentionWeights& weights_;
  const size_t window_tokens_;
  const ConstMatrixView projected_;
  const ConstMatrixView gates_;
  const MatrixView output_;
  Matrix convolved_;  // [rows, linear_conv_channels]
};

}  // namespace

void RunLinearAttention(const ThreadPool& threads, const ModelConfig& config,
                        const LinearAttentionWeights& weights, size_t window_tokens,
                        ConstMatrixView projected, ConstMatrixView gates, MatrixView output) {
  LinearAttention(config, weights, window_tokens, projected, gates, output).Run(threads);
}

}  // namespace cria
