#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "cria/error.h"
#include "decode/tensor_places.h"
#include "model/model_file.h"
#include "xnn/linear.h"
#include "xnn/packed_weights.h"

namespace cria {

// Reads the norms and biases of `file` to `memory`, [VectorElements], one behind another, and
// leaves pointers to them in their places. Fails if a tensor has no place of its shape.
Status LoadVectors(const ModelFile& file, const TensorPlaces& places, float* memory);

// Fills the Projections of `places` with the matrices of `file`, which are packed in `weights`, and
// creates their operators in `linears`, for pools of at most `num_threads`. Returns the bytes of
// weights and scales that one token reads: those of every matrix except the embedding table. Fails
// if a matrix has no place of its shape.
Result<uint64_t> LoadMatrices(const ModelFile& file, const TensorPlaces& places,
                              const xnn::PackedWeights& weights, size_t num_threads,
                              std::deque<xnn::Linear>& linears);

}  // namespace cria
