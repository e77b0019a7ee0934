#pragma once

#include "converter/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Gives the tensors of the classes of LFM2 in transformers the names that Llama's class has, and
// tensors without a counterpart there the names in converter/write/tensor_map. Unknown names do not
// change.
Status RenameLfm2Tensors(Checkpoint& checkpoint);

// Makes the taps of convolutions [conv_L_cache, hidden_size], as the model has them; checkpoints
// have [hidden_size, 1, conv_L_cache] (Hugging Face) or [hidden_size, conv_L_cache] (GGUF).
Status TransposeTaps(Checkpoint& checkpoint);

}  // namespace cria
