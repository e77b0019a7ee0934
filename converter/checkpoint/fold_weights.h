#pragma once

#include "converter/checkpoint/checkpoint.h"

namespace cria {

// If only a part of each head is rotated, a factor of the cosines and sines is one of that part's
// scores, which the decoder does not know: moves it from `config`, where all layers must be alike,
// to `folding`.
void MoveAttentionFactor(ModelConfig& config, WeightFolding& folding);

// Puts checkpoint.folding into the tensors, so that their elements are read as the model's. After
// that, the decoder computes what the checkpoint means without knowing these numbers.
void FoldIntoWeights(Checkpoint& checkpoint);

}  // namespace cria
