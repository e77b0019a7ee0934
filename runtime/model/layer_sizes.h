#pragma once

#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Checks what lets layers differ in their sizes: heads of their own sizes, keys and values that
// several layers share, and what a layer has besides its two halves. Kinds of layers are checked.
Status ValidateLayerSizes(const ModelConfig& config);

}  // namespace cria
