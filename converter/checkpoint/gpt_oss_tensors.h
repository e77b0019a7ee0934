#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Gives gpt-oss's tensors the names that mixtures have elsewhere, and replaces those of all experts
// by one for each matrix and bias of an expert. The class multiplies by matrices of [inputs,
// outputs], but those in MXFP4 are [outputs, inputs]; rows of gates and of up alternate.
Status SplitGptOssTensors(Checkpoint& checkpoint);

}  // namespace cria
