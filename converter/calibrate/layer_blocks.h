#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "converter/calibrate/block.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// A feed-forward whose rows choose among experts.
struct Mixture {
  Mixture() = default;
  Mixture(Mixture&&) = default;  // The blocks point to elements of the vectors.
  Mixture& operator=(Mixture&&) = default;
  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;

  // Gives the plan what was changed in the experts' tensors.
  void Join();

  PlannedTensor* norm = nullptr;         // The inputs' norm, or null.
  PlannedTensor* output_norm = nullptr;  // Or null.
  PlannedTensor* router = nullptr;
  PlannedTensor* router_bias = nullptr;  // Null if there is none, like the next two.
  PlannedTensor* shared_gate = nullptr;  // The shared expert's.
  PlannedTensor* down_bias = nullptr;    // What all experts add to their outputs.
  std::vector<Block> experts;
  std::optional<Block> shared;  // The expert that all rows read.

  // The matrices of all experts, in the plan, and apart.
  PlannedTensor* all_first = nullptr;
  PlannedTensor* all_second = nullptr;
  std::vector<PlannedTensor> first;   // [experts]
  std::vector<PlannedTensor> second;  // Also apart.

  // The experts, and then the shared one.
  size_t num_blocks() const { return experts.size() + (shared ? 1 : 0); }
  const Block& block(size_t index) const {
    return index < experts.size() ? experts[index] : *shared;
  }
};

// Attention, or what a layer has in its place, and a dense feed-forward as a second block or a
// mixture.
struct LayerBlocks {
  std::vector<Block> blocks;
  std::optional<Mixture> mixture;
};

// The blocks of a layer, for windows of this length. They point into the plan; threads and
// configuration must outlive them.
Result<LayerBlocks> MakeLayerBlocks(const ModelConfig& config, const ThreadPool& threads,
                                    size_t window_tokens, size_t layer, FilePlan& plan);

// How many weights of a matrix a token is multiplied by, on average if tokens choose evenly.
double WeightsPerToken(const ModelConfig& config, const TensorSpec& spec);

}  // namespace cria
