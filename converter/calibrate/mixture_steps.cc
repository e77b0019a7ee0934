#include "converter/calibrate/mixture_steps.h"

#include <algorithm>
#include <utility>

#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"

namespace cria {
namespace {

float DotProduct(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return static_cast<float>(sum);
}

}  // namespace

void ChooseLargest(std::span<const float> products, const LargestChoice& choice,
                   std::span<uint32_t> experts, std::span<float> weights) {
  std::vector<float> scores(products.begin(), products.end());
  if (choice.has_sigmoids) {
    for (float& score : scores) score = Sigmoid(score);
    for (size_t i = 0; i < choice.bias.size(); ++i) scores[i] += choice.bias[i];
  }
  std::vector<uint32_t> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(experts.size()),
                            [&](uint32_t a, uint32_t b) {
                              return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                            });
  std::ranges::copy_n(order.begin(), static_cast<ptrdiff_t>(experts.size()), experts.begin());
  if (choice.has_sigmoids) {
    float chosen_sum = 1e-6f;
    for (size_t i = 0; i < experts.size(); ++i) {
      weights[i] = Sigmoid(products[experts[i]]);
      chosen_sum += weights[i];
    }
    if (!choice.normalize) return;
    for (float& weight : weights) weight /= chosen_sum;
    return;
  }
  const float largest = scores[order.front()];
  double sum = 0.0;
  for (size_t i = 0; i < (choice.normalize ? experts.size() : order.size()); ++i) {
    sum += Exponential(scores[order[i]] - largest);
  }
  for (size_t i = 0; i < experts.size(); ++i) {
    weights[i] = static_cast<float>(Exponential(scores[experts[i]] - largest) / sum);
  }
}

Result<MixtureSteps> MixtureSteps::Read(const Mixture& mixture, const ModelConfig& config,
                                        const ThreadPool& threads) {
  const Block norms = {.norm = mixture.norm, .output_norm = mixture.output_norm};
  CRIA_ASSIGN_OR_RETURN(BlockSteps frame, BlockSteps::Read(norms, config, threads));
  MixtureSteps steps(mixture, config, threads, std::move(frame));
  CRIA_ASSIGN_OR_RETURN(steps.router_, ReadMatrix(*mixture.router));
  CRIA_ASSIGN_OR_RETURN(steps.router_bias_, ReadVector(mixture.router_bias));
  CRIA_ASSIGN_OR_RETURN(steps.shared_gate_, ReadVector(mixture.shared_gate));
  CRIA_ASSIGN_OR_RETURN(steps.down_bias_, ReadVector(mixture.down_bias));
  return steps;
}

void MixtureSteps::Route(const Matrix& inputs, size_t first_row,
                         std::span<WeightedRows> blocks) const {
  Matrix scores = Multiply(*threads_, inputs, router_);
  if (config_->router_bias) AddBias(router_bias_, scores.view());
  const size_t chosen = config_->num_experts_per_tok;
  const LargestChoice choice = {
      .normalize = config_->norm_topk_prob,
      .has_sigmoids = config_->scoring_func == ScoringFunc::kSigmoid,
      .bias = config_->router_bias ? std::span<const float>() : std::span(router_bias_)};
  std::vector<uint32_t> experts(chosen);
  std::vector<float> weights(chosen);
  for (size_t row = 0; row < inputs.rows(); ++row) {
    const auto add = [&](size_t block, float weight) {
      blocks[block].rows.push_back(static_cast<uint32_t>(first_row + row));
      blocks[block].weights.push_back(weight);
    };
    ChooseLargest(scores.view().row(row), choice, experts, weights);
    for (size_t i = 0; i < chosen; ++i) add(experts[i], weights[i]);
    if (!mixture_->shared) continue;
    add(mixture_->experts.size(),
        shared_gate_.empty() ? 1.0f : Sigmoid(DotProduct(inputs.view().row(row), shared_gate_)));
  }
}

MixturePass::MixturePass(const MixtureSteps& steps, const Matrix& hidden)
    : steps_(&steps),
      hidden_(&hidden),
      blocks_(steps.mixture().num_blocks()),
      sum_(hidden.rows(), hidden.columns()) {
  steps.Route(steps.Inputs(hidden), 0, blocks_);
}

Matrix MixturePass::InputsOf(size_t block) const {
  const std::vector<uint32_t>& rows = blocks_[block].rows;
  Matrix inputs(rows.size(), hidden_->columns());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(hidden_->view().row(rows[i]), inputs.view().row(i).begin());
  }
  return steps_->Inputs(std::move(inputs));
}

void MixturePass::Add(size_t block, const Matrix& products) {
  const WeightedRows& weighted = blocks_[block];
  const std::span<const float> bias = steps_->OutputBias(block);
  for (size_t i = 0; i < weighted.rows.size(); ++i) {
    const std::span<float> sum = sum_.view().row(weighted.rows[i]);
    const std::span<const float> addend = products.view().row(i);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += weighted.weights[i] * addend[j];
    for (size_t j = 0; j < bias.size(); ++j) sum[j] += weighted.weights[i] * bias[j];
  }
}

}  // namespace cria
