#include "reference/reference_mixture.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <numeric>

#include "reference/reference_math.h"

namespace cria::reference {

ReferenceMixture::ReferenceMixture(const ReferenceConfig& config, const std::string& prefix,
                                   const FindTensor& find)
    : config_(config) {
  const ReferenceExperts& c = config.experts;
  const size_t hidden = config.hidden_size;
  const size_t width = c.intermediate_size;
  experts_.resize(c.num_experts);
  switch (c.names) {
    case ReferenceExpertNames::kQwen:
      router_ = find(prefix + "mlp.gate.weight", {c.num_experts, hidden});
      for (size_t e = 0; e < c.num_experts; ++e) {
        const std::string expert = std::format("{}mlp.experts.{}.", prefix, e);
        experts_[e] = {find(expert + "gate_proj.weight", {width, hidden}),
                       find(expert + "up_proj.weight", {width, hidden}),
                       find(expert + "down_proj.weight", {hidden, width}), width};
      }
      break;
    case ReferenceExpertNames::kMixtral:
      router_ = find(prefix + "block_sparse_moe.gate.weight", {c.num_experts, hidden});
      for (size_t e = 0; e < c.num_experts; ++e) {
        const std::string expert = std::format("{}block_sparse_moe.experts.{}.", prefix, e);
        experts_[e] = {find(expert + "w1.weight", {width, hidden}),
                       find(expert + "w3.weight", {width, hidden}),
                       find(expert + "w2.weight", {hidden, width}), width};
      }
      break;
    case ReferenceExpertNames::kLfm2:
      router_ = find(prefix + "feed_forward.gate.weight", {c.num_experts, hidden});
      if (c.use_expert_bias) {
        expert_bias_ = find(prefix + "feed_forward.expert_bias", {c.num_experts});
      }
      for (size_t e = 0; e < c.num_experts; ++e) {
        const std::string expert = std::format("{}feed_forward.experts.{}.", prefix, e);
        experts_[e] = {find(expert + "w1.weight", {width, hidden}),
                       find(expert + "w3.weight", {width, hidden}),
                       find(expert + "w2.weight", {hidden, width}), width};
      }
      break;
    case ReferenceExpertNames::kGemma4: {
      router_ = find(prefix + "router.proj.weight", {c.num_experts, hidden});
      router_scale_ = find(prefix + "router.scale", {hidden});
      per_expert_scale_ = find(prefix + "router.per_expert_scale", {c.num_experts});
      const float* inputs =
          find(prefix + "experts.gate_up_proj", {c.num_experts, 2 * width, hidden});
      const float* outputs = find(prefix + "experts.down_proj", {c.num_experts, hidden, width});
      for (size_t e = 0; e < c.num_experts; ++e) {
        const float* gate = inputs + e * 2 * width * hidden;
        experts_[e] = {gate, gate + width * hidden, outputs + e * hidden * width, width};
      }
      break;
    }
    case ReferenceExpertNames::kGptOss:  // ReferenceGptOssExperts.
      break;
    case ReferenceExpertNames::kGranite: {
      const std::string block = prefix + "block_sparse_moe.";
      router_ = find(block + "router.layer.weight", {c.num_experts, hidden});
      // All experts in one tensor; of each, the rows of the gate are before those of up.
      const float* inputs = find(block + "input_linear.weight", {c.num_experts, 2 * width, hidden});
      const float* outputs = find(block + "output_linear.weight", {c.num_experts, hidden, width});
      for (size_t e = 0; e < c.num_experts; ++e) {
        const float* gate = inputs + e * 2 * width * hidden;
        experts_[e] = {gate, gate + width * hidden, outputs + e * hidden * width, width};
      }
      break;
    }
  }
  const size_t shared = c.shared_intermediate_size;
  if (shared == 0) return;
  if (c.names == ReferenceExpertNames::kGranite) {
    const float* gate = find(prefix + "shared_mlp.input_linear.weight", {2 * shared, hidden});
    shared_expert_ = {gate, gate + shared * hidden,
                      find(prefix + "shared_mlp.output_linear.weight", {hidden, shared}), shared};
    return;
  }
  const std::string expert = prefix + "mlp.shared_expert.";
  shared_expert_ = {find(expert + "gate_proj.weight", {shared, hidden}),
                    find(expert + "up_proj.weight", {shared, hidden}),
                    find(expert + "down_proj.weight", {hidden, shared}), shared};
  shared_expert_gate_ = find(prefix + "mlp.shared_expert_gate.weight", {1, hidden});
}

// LFM2's mixture has a sigmoid of each score, as DeepSeek-AI 2024 (V3), instead of a softmax of
// all.
std::vector<double> ReferenceMixture::Scores(const std::vector<double>& normed) const {
  std::vector<double> inputs = normed;
  for (size_t i = 0; router_scale_ != nullptr && i < inputs.size(); ++i) {
    inputs[i] *= router_scale_[i] / std::sqrt(static_cast<double>(inputs.size()));
  }
  std::vector<double> scores = MatrixTimesVector(router_, experts_.size(), inputs);
  if (!config_.experts.has_sigmoid_scores) {
    Softmax(scores);
    return scores;
  }
  for (double& score : scores) score = 1.0 / (1.0 + std::exp(-score));
  return scores;
}

std::vector<size_t> ReferenceMixture::ChosenBy(const std::vector<double>& normed) const {
  std::vector<double> scores = Scores(normed);
  for (size_t i = 0; expert_bias_ != nullptr && i < scores.size(); ++i)
    scores[i] += expert_bias_[i];
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t first, size_t second) { return scores[first] > scores[second]; });
  order.resize(config_.experts.num_experts_per_tok);
  return order;
}

// Shazeer et al. 2017: the sum of the outputs of the experts with the largest probabilities, times
// these. Jiang et al. 2024 (Mixtral) take the softmax of the largest scores alone, which is the
// same as dividing by the sum of the largest probabilities. Qwen2's experts that all tokens use
// have a sigmoid of their own. LFM2's class adds 1e-6 to the sum, so that it is never 0.
std::vector<double> ReferenceMixture::Of(const std::vector<double>& normed,
                                         const std::vector<double>& routed) const {
  const std::vector<double> scores = Scores(routed);
  const std::vector<size_t> chosen = ChosenBy(routed);
  double divisor = 1.0;
  if (config_.experts.norm_topk_prob) {
    divisor = config_.experts.has_sigmoid_scores ? 1e-6 : 0.0;
    for (const size_t expert : chosen) divisor += scores[expert];
  }
  std::vector<double> sum(normed.size());
  for (const size_t expert : chosen) {
    double weight = scores[expert] / divisor * config_.experts.routed_scaling_factor;
    if (per_expert_scale_ != nullptr) weight *= per_expert_scale_[expert];
    AddExpert(experts_[expert], weight, normed, sum);
  }
  if (shared_expert_.width == 0) return sum;
  double weight = 1.0;
  if (shared_expert_gate_ != nullptr) {
    weight = 1.0 / (1.0 + std::exp(-MatrixTimesVector(shared_expert_gate_, 1, normed)[0]));
  }
  AddExpert(shared_expert_, weight, normed, sum);
  return sum;
}

void ReferenceMixture::AddExpert(const Expert& expert, double weight,
                                 const std::vector<double>& normed,
                                 std::vector<double>& sum) const {
  const std::vector<double> gate = MatrixTimesVector(expert.gate_proj, expert.width, normed);
  std::vector<double> inner = MatrixTimesVector(expert.up_proj, expert.width, normed);
  for (size_t i = 0; i < inner.size(); ++i) inner[i] *= Activate(config_.activation, gate[i]);
  const std::vector<double> output = MatrixTimesVector(expert.down_proj, sum.size(), inner);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * output[i];
}

}  // namespace cria::reference
