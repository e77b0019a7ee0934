#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/model_file.h"
#include "model/tensor_table.h"

namespace cria {

// What decides how much memory a model needs: for a model file, or for a file not yet written.
struct ModelOutline {
  ModelConfig config;
  TensorLayout embedding;
  // The table of per-layer inputs; without rows if the model has none.
  TensorLayout per_layer_embedding;
  std::vector<TensorLayout> matrices;  // Matrices that products use, in a forward pass's order.
  size_t num_mtp_matrices = 0;         // The last ones: of the layer that guesses tokens.
  uint64_t metadata_bytes = 0;         // In the model file; mostly the tokenizer.
  bool file_is_mappable = true;
  uint64_t file_bytes = 0;
  // The tokenizer was not there, so that its part of metadata_bytes is only near the real one.
  bool tokenizer_is_estimated = false;
  bool prefers_f16_cache = false;  // As ModelFile says.
  bool is_packed = false;          // The file holds packed weights in place of the portable ones.
};

ModelOutline OutlineOf(const ModelFile& model);

}  // namespace cria
