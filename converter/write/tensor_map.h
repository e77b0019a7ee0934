#pragma once

#include <vector>

#include "converter/checkpoint.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// A tensor of the model and its sources: the rows of `parts`, one part after another. The parts
// point into the checkpoint.
struct MappedTensor {
  TensorSpec spec;
  std::vector<const TensorSource*> parts = {};
};

// Finds every tensor of the checkpoint's configuration, in the order of ExpectedTensors, and checks
// the shapes. The source of a tied head is the embedding. Fails if the checkpoint has a tensor that
// the model does not use, because without it the model would compute something else.
Result<std::vector<MappedTensor>> MapTensors(const Checkpoint& checkpoint);

}  // namespace cria
