#include "model/model_outline.h"

namespace cria {

ModelOutline OutlineOf(const ModelFile& model) {
  ModelOutline outline = {.config = model.config(),
                          .embedding = model.tensor(TensorRole::kEmbedTokens).layout,
                          .metadata_bytes = model.metadata_bytes(),
                          .file_is_mappable = model.is_mappable(),
                          .file_bytes = model.size_bytes(),
                          .prefers_f16_cache = model.prefers_f16_cache(),
                          .is_packed = model.packed_offset() != 0};
  if (model.config().hidden_size_per_layer_input != 0) {
    outline.per_layer_embedding = model.tensor(TensorRole::kEmbedTokensPerLayer).layout;
  }
  for (const StoredTensor* matrix : MultipliedMatrices(model)) {
    outline.matrices.push_back(matrix->layout);
    if (matrix->spec.is_of_mtp) ++outline.num_mtp_matrices;
  }
  return outline;
}

}  // namespace cria
