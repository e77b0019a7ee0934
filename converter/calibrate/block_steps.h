#pragma once

#include <vector>

#include "converter/calibrate/block.h"
#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What a block computes besides the products with its two matrices, for rows of hidden activations,
// [tokens, hidden_size].
class BlockSteps {
 public:
  // Reads the block's vectors as the plan has them. The configuration and the threads must outlive
  // the result, and for Inner and what calls it, the block, too.
  static Result<BlockSteps> Read(const Block& block, const ModelConfig& config,
                                 const ThreadPool& threads);

  // What the first matrix reads.
  Matrix Inputs(Matrix hidden) const;
  // What the second matrix reads, from the products of these inputs with the first. If the inputs
  // are rounded, so are those of a gate, unlike the runtime's.
  Matrix Inner(Matrix products, const Matrix& inputs) const;
  // Adds what the block makes of the products with the second matrix.
  void AddOutputs(Matrix products, Matrix& hidden) const;

  // The products with the second matrix for these inputs of the first; with `rounds`, the inputs of
  // both are rounded as the runtime does.
  Matrix Products(const Matrix& first, const Matrix& second, bool rounds, Matrix inputs) const;
  // All of the block with these matrices.
  void Run(const Matrix& first, const Matrix& second, bool rounds, Matrix& hidden) const;

 private:
  BlockSteps(const Block& block, const ModelConfig& config, const ThreadPool& threads)
      : block_(&block), config_(&config), threads_(&threads) {}

  const Block* block_;
  const ModelConfig* config_;
  const ThreadPool* threads_;
  std::vector<float> gain_;         // Empty if the inputs are not normalized.
  std::vector<float> output_gain_;  // Empty if the outputs are not.
  std::vector<float> first_bias_;   // Empty if the model has none, as is second_bias_.
  std::vector<float> second_bias_;
  std::vector<float> scalar_;  // Empty if the hidden rows are not multiplied.
  Matrix gate_;                // [gates, hidden_size]; without rows if the block has none.
};

}  // namespace cria
