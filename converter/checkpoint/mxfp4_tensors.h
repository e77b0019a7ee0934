#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Replaces each pair of tensors NAME_blocks, [..., rows, inputs / 32, 16] bytes with two codes
// each, and NAME_scales, [..., rows, inputs / 32] bytes of exponents, by NAME, [..., rows, inputs]
// in MXFP4. Fails if one of them is missing or their shapes do not fit.
Status JoinMxfp4Tensors(Checkpoint& checkpoint);

}  // namespace cria
