#include "model/model_outline.h"

namespace cria {

ModelOutline OutlineOf(const ModelFile& model) {
  ModelOutline outline = {.config = model.config(),
                          .metadata_bytes = model.metadata_bytes(),
                          .metadata_is_mapped = model.metadata_is_mapped(),
                          .file_bytes = model.size_bytes(),
                          .is_packed = model.packed_offset() != 0};
  for (const StoredTensor* matrix : MultipliedMatrices(model)) {
    outline.matrices.push_back(matrix->layout);
  }
  return outline;
}

}  // namespace cria
