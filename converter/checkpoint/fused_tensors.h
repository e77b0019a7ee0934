#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Phi 3's checkpoints have queries, keys and values in one matrix, self_attn.qkv_proj, and gate and
// up in another, mlp.gate_up_proj. Replaces them by the matrices that other checkpoints have.
Status SplitFusedTensors(Checkpoint& checkpoint);

}  // namespace cria
