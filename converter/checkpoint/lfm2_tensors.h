#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Gives the tensors of the classes of LFM2 in transformers the names that Llama's class has, and
// tensors without a counterpart there the names in converter/write/tensor_map. Unknown names do not
// change.
Status RenameLfm2Tensors(Checkpoint& checkpoint);

}  // namespace cria
