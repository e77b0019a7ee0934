#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Gives the tensors of a mixture the names of Qwen's checkpoints: mlp.gate,
// mlp.experts.E.gate_proj, up_proj and down_proj, mlp.shared_expert. Mixtral names them in another
// way, and Granite's and GGUF files have one tensor for all experts, which is split.
Status NormalizeExpertTensors(Checkpoint& checkpoint);

}  // namespace cria
