#pragma once

#include <vector>

#include "model/config.h"

namespace cria {

// The kinds of layers that a checkpoint describes. They may be the same.
struct AttentionKinds {
  LayerKind full;
  LayerKind sliding;
};

// Sets layer_kinds and kind_of_layer. `is_sliding` says for each layer which of the kinds it has.
// The order of layer_kinds is that of the first layers of each kind, so that a model becomes the
// same file from every format. A window that is not shorter than the longest context has no effect,
// and becomes 0. max_position_embeddings of `config` must be set already.
void SetLayerKinds(AttentionKinds kinds, const std::vector<bool>& is_sliding, ModelConfig& config);

}  // namespace cria
