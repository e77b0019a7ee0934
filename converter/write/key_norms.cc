#include "converter/write/key_norms.h"

#include <algorithm>
#include <vector>

#include "converter/input/tensor_source.h"

namespace cria {

Status MoveKeyNorms(std::span<MappedTensor> tensors) {
  TensorReader reader;
  for (MappedTensor& keys : tensors) {
    if (keys.spec.role != TensorRole::kKNorm) continue;
    const auto queries = std::ranges::find_if(tensors, [&](const MappedTensor& tensor) {
      return tensor.spec.role == TensorRole::kQNorm && tensor.spec.layer == keys.spec.layer;
    });
    std::vector<float> weights(keys.spec.input_channels);
    CRIA_RETURN_IF_ERROR(reader.Read(*keys.parts.front().source, 0, weights));
    MultiplyColumns(weights, queries->parts.front());
    // A weight of 0 stays: the query's is 0, too.
    for (float& weight : weights) weight = weight == 0.0f ? 1.0f : 1.0f / weight;
    MultiplyColumns(weights, keys.parts.front());
  }
  return {};
}

}  // namespace cria
