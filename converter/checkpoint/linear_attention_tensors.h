#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Checkpoints of models with linear attention, gates of attention's output or Mamba have several
// matrices in one, whose rows are next to each other or alternate by heads. Replaces these by
// matrices of one kind each: "linear_attn.q_proj.weight", "k_proj", "v_proj", "z_proj", "b_proj"
// and "a_proj", "self_attn.q_proj.weight" and "gate_proj", and "mamba.in_proj.weight" and
// "dt_proj". Does nothing for other models.
Status SplitLinearAttention(Checkpoint& checkpoint);

}  // namespace cria
