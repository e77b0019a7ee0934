#pragma once

#include <vector>

#include "converter/checkpoint.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// A tensor of the model and what it is made of: the rows of `parts`, one after another. The parts
// point into the checkpoint.
struct MappedTensor {
  TensorSpec spec;
  std::vector<const TensorSource*> parts = {};
};

// Finds every tensor that the checkpoint's configuration calls for, in the order of
// ExpectedTensors, and checks the shapes. A tied head is made of the embedding. A tensor of the
// checkpoint that the model has no place for is an error, since leaving it out would change what
// the model computes.
Result<std::vector<MappedTensor>> MapTensors(const Checkpoint& checkpoint);

}  // namespace cria
