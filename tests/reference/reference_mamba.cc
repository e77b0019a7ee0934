#include "reference/reference_mamba.h"

#include <cmath>

#include "reference/reference_math.h"

namespace cria::reference {
namespace {

double SiluOf(double x) { return x / (1.0 + std::exp(-x)); }

void AddTo(std::vector<double>& sums, const float* bias) {
  for (size_t i = 0; bias != nullptr && i < sums.size(); ++i) sums[i] += bias[i];
}

}  // namespace

ReferenceMamba::ReferenceMamba(const ReferenceConfig& config, const std::string& prefix,
                               const FindTensor& find)
    : config_(config),
      sizes_(config.mamba),
      channels_(sizes_.num_heads * sizes_.head_dim),
      state_(sizes_.num_groups * sizes_.state_size) {
  const std::string module = prefix + "mamba.";
  const size_t heads = sizes_.num_heads;
  const size_t convolved = channels_ + 2 * state_;
  const size_t projected = channels_ + convolved + heads;
  in_proj_ = find(module + "in_proj.weight", {projected, config.hidden_size});
  conv_ = find(module + "conv1d.weight", {convolved, 1, sizes_.conv_kernel});
  dt_bias_ = find(module + "dt_bias", {heads});
  a_log_ = find(module + "A_log", {heads});
  d_ = find(module + "D", {heads});
  norm_ = find(module + "norm.weight", {channels_});
  out_proj_ = find(module + "out_proj.weight", {config.hidden_size, channels_});
  if (sizes_.conv_bias) conv_bias_ = find(module + "conv1d.bias", {convolved});
  if (sizes_.proj_bias) {
    in_bias_ = find(module + "in_proj.bias", {projected});
    out_bias_ = find(module + "out_proj.bias", {config.hidden_size});
  }
  Reset();
}

void ReferenceMamba::Reset() {
  inputs_.clear();
  states_.assign(channels_ * sizes_.state_size, 0.0);
}

std::vector<double> ReferenceMamba::Convolve(const std::vector<double>& channels) {
  const size_t taps = sizes_.conv_kernel;
  inputs_.push_back(channels);
  std::vector<double> convolved(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    double sum = conv_bias_ == nullptr ? 0.0 : conv_bias_[i];
    for (size_t back = 0; back < taps && back < inputs_.size(); ++back) {
      sum += conv_[i * taps + taps - 1 - back] * inputs_[inputs_.size() - 1 - back][i];
    }
    convolved[i] = SiluOf(sum);
  }
  return convolved;
}

void ReferenceMamba::Normalize(std::vector<double>& output) const {
  const size_t size = channels_ / sizes_.num_groups;
  for (size_t first = 0; first < channels_; first += size) {
    double squares = 0.0;
    for (size_t i = first; i < first + size; ++i) squares += output[i] * output[i];
    const double root = std::sqrt(squares / static_cast<double>(size) + config_.rms_norm_eps);
    for (size_t i = first; i < first + size; ++i) output[i] *= norm_[i] / root;
  }
}

// mamba2_selective_state_update in transformers, for one token, and what is around it in
// GraniteMoeHybridMambaLayer.
std::vector<double> ReferenceMamba::Of(const std::vector<double>& normed) {
  const size_t convolved = channels_ + 2 * state_;
  std::vector<double> projected =
      MatrixTimesVector(in_proj_, channels_ + convolved + sizes_.num_heads, normed);
  AddTo(projected, in_bias_);
  const auto begin = projected.begin() + static_cast<std::ptrdiff_t>(channels_);
  const std::vector<double> xbc = Convolve({begin, begin + static_cast<std::ptrdiff_t>(convolved)});
  std::vector<double> output(channels_);
  for (size_t head = 0; head < sizes_.num_heads; ++head) {
    const size_t group = head / (sizes_.num_heads / sizes_.num_groups);
    const double* const b = &xbc[channels_ + group * sizes_.state_size];
    const double* const c = b + state_;
    const double dt =
        std::log1p(std::exp(projected[channels_ + convolved + head] + dt_bias_[head]));
    const double decay = std::exp(-std::exp(double{a_log_[head]}) * dt);
    for (size_t i = head * sizes_.head_dim; i < (head + 1) * sizes_.head_dim; ++i) {
      double* const state = &states_[i * sizes_.state_size];
      output[i] = d_[head] * xbc[i];
      for (size_t n = 0; n < sizes_.state_size; ++n) {
        state[n] = decay * state[n] + dt * b[n] * xbc[i];
        output[i] += state[n] * c[n];
      }
      output[i] *= SiluOf(projected[i]);
    }
  }
  Normalize(output);
  std::vector<double> result = MatrixTimesVector(out_proj_, config_.hidden_size, output);
  AddTo(result, out_bias_);
  return result;
}

}  // namespace cria::reference
