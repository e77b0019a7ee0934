#include "reference/reference_gpt_oss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/reference_math.h"

namespace cria::reference {

ReferenceGptOssExperts::ReferenceGptOssExperts(const ReferenceConfig& config,
                                               const std::string& prefix, const FindTensor& find)
    : config_(config), width_(config.experts.intermediate_size) {
  const size_t experts = config.experts.num_experts;
  const size_t hidden = config.hidden_size;
  router_ = find(prefix + "mlp.router.weight", {experts, hidden});
  router_bias_ = find(prefix + "mlp.router.bias", {experts});
  gate_up_ = find(prefix + "mlp.experts.gate_up_proj", {experts, hidden, 2 * width_});
  gate_up_bias_ = find(prefix + "mlp.experts.gate_up_proj_bias", {experts, 2 * width_});
  down_ = find(prefix + "mlp.experts.down_proj", {experts, width_, hidden});
  down_bias_ = find(prefix + "mlp.experts.down_proj_bias", {experts, hidden});
}

// GptOssTopKRouter: the softmax of the largest scores.
std::vector<double> ReferenceGptOssExperts::Of(const std::vector<double>& normed) const {
  const size_t num_experts = config_.experts.num_experts;
  std::vector<double> scores = MatrixTimesVector(router_, num_experts, normed);
  for (size_t i = 0; i < num_experts; ++i) scores[i] += router_bias_[i];
  std::vector<size_t> order(num_experts);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t first, size_t second) { return scores[first] > scores[second]; });
  order.resize(config_.experts.num_experts_per_tok);
  double divisor = 0.0;
  for (const size_t expert : order) divisor += std::exp(scores[expert] - scores[order[0]]);
  std::vector<double> sum(normed.size());
  for (const size_t expert : order) {
    const double weight = std::exp(scores[expert] - scores[order[0]]) / divisor;
    const std::vector<double> output = Expert(expert, normed);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * output[i];
  }
  return sum;
}

// GptOssExperts, whose matrices are [inputs, outputs], with gates and up by turns.
std::vector<double> ReferenceGptOssExperts::Expert(size_t expert,
                                                   const std::vector<double>& normed) const {
  const size_t hidden = normed.size();
  const double limit = config_.swiglu_limit;
  const float* const first = gate_up_ + expert * hidden * 2 * width_;
  const float* const first_bias = gate_up_bias_ + expert * 2 * width_;
  const float* const second = down_ + expert * width_ * hidden;
  std::vector<double> output(down_bias_ + expert * hidden, down_bias_ + (expert + 1) * hidden);
  for (size_t i = 0; i < width_; ++i) {
    double gate = first_bias[2 * i];
    double up = first_bias[2 * i + 1];
    for (size_t j = 0; j < hidden; ++j) {
      gate += first[j * 2 * width_ + 2 * i] * normed[j];
      up += first[j * 2 * width_ + 2 * i + 1] * normed[j];
    }
    gate = std::min(gate, limit);
    up = std::clamp(up, -limit, limit);
    const double inner = (up + 1.0) * gate / (1.0 + std::exp(-config_.swiglu_alpha * gate));
    for (size_t j = 0; j < hidden; ++j) output[j] += inner * second[i * hidden + j];
  }
  return output;
}

}  // namespace cria::reference
