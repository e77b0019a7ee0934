#pragma once

#include <vector>

#include "model/config.h"

namespace cria {

// Sets layer_kinds and kind_of_layer to what `layers` has for each layer. The order of layer_kinds
// is that of the first layers of each kind, so that a model becomes the same file from every
// format. A window that is not shorter than the longest context has no effect, and becomes 0.
// max_position_embeddings of `config` must be set already.
void SetLayerKinds(std::vector<LayerKind> layers, ModelConfig& config);

}  // namespace cria
