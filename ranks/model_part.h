#pragma once

#include <cstddef>

#include "cria/error.h"
#include "model/model_file.h"
#include "ranks/divide.h"

namespace cria {

// Makes a rank's part of a model of the whole one.
class ModelPart {
 public:
  // Leaves in `model` what `share` has: tensors have fewer rows or columns, and the configuration
  // has fewer heads and channels. So a decoder of this part is an ordinary decoder of a smaller
  // model, except that it has to add up what the ranks compute. The packing digest is one of this
  // part. On rank 0, the configuration keeps the whole vocabulary, because the logits are gathered
  // there.
  static Status Take(const ranks::RankShare& share, size_t rank, ModelFile& model);
};

}  // namespace cria
