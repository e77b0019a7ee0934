#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/calibrate/block_steps.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// The rows that a block of a mixture reads, in ascending order, and what its outputs are multiplied
// by.
struct WeightedRows {
  std::vector<uint32_t> rows;
  std::vector<float> weights;
};

// As ops::ExpertChoice.
struct LargestChoice {
  bool normalize = false;
  bool has_sigmoids = false;
  std::span<const float> bias = {};  // Empty: zeros.
};

// As ops::ChooseExperts, but the last bits are the same on every processor.
void ChooseLargest(std::span<const float> products, const LargestChoice& choice,
                   std::span<uint32_t> experts, std::span<float> weights);

// What a mixture computes besides the products with its experts' matrices, for rows of hidden
// activations, [tokens, hidden_size].
class MixtureSteps {
 public:
  // Reads the router and the vectors as the plan has them. The arguments must outlive the result.
  static Result<MixtureSteps> Read(const Mixture& mixture, const ModelConfig& config,
                                   const ThreadPool& threads);

  // What the router and the experts read.
  Matrix Inputs(Matrix hidden) const { return frame_.Inputs(std::move(hidden)); }
  // Adds to each of the mixture's blocks the rows that read it, for inputs that are not rounded;
  // the first of them has the number `first_row`.
  void Route(const Matrix& inputs, size_t first_row, std::span<WeightedRows> blocks) const;
  // Adds the weighted sum of what the blocks make of them.
  void AddOutputs(Matrix sum, Matrix& hidden) const { frame_.AddOutputs(std::move(sum), hidden); }

  const Mixture& mixture() const { return *mixture_; }
  // What is added to a block's outputs before their weights; empty if there is nothing.
  std::span<const float> OutputBias(size_t block) const {
    const size_t size = router_.columns();
    if (down_bias_.empty() || block >= mixture_->experts.size()) return {};
    return std::span(down_bias_).subspan(block * size, size);
  }

 private:
  MixtureSteps(const Mixture& mixture, const ModelConfig& config, const ThreadPool& threads,
               BlockSteps frame)
      : mixture_(&mixture), config_(&config), threads_(&threads), frame_(std::move(frame)) {}

  const Mixture* mixture_;
  const ModelConfig* config_;
  const ThreadPool* threads_;
  BlockSteps frame_;                // The norms.
  Matrix router_;                   // [experts, hidden_size]
  std::vector<float> router_bias_;  // Empty if there is none, like the next two.
  std::vector<float> shared_gate_;
  std::vector<float> down_bias_;  // [experts][hidden_size]
};

// Rows on their way through a mixture, block after block.
class MixturePass {
 public:
  // `steps` and `hidden` must outlive it.
  MixturePass(const MixtureSteps& steps, const Matrix& hidden);

  // What a block reads.
  Matrix InputsOf(size_t block) const;
  // Adds the products of a block's second matrix for these inputs, with their weights.
  void Add(size_t block, const Matrix& products);
  // The sum so far, [rows, hidden_size].
  Matrix TakeSum() { return std::move(sum_); }

 private:
  const MixtureSteps* steps_;
  const Matrix* hidden_;
  std::vector<WeightedRows> blocks_;
  Matrix sum_;
};

}  // namespace cria
