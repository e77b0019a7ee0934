#pragma once

#include <vector>

#include "converter/checkpoint/checkpoint.h"
#include "converter/gguf/gguf_architectures.h"
#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads the keys that only Gemma 4's files have, and those that they have in another way: sizes of
// heads and feed-forwards, layers that read keys and values of others, and per-layer inputs.
// `layers` has what is known of each layer, with a window where `is_sliding` says so.
Status ReadGgufGemma4(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                      const std::vector<bool>& is_sliding, ModelConfig& config,
                      std::vector<LayerKind>& layers);

// The part of the pairs that layers without a window rotate follows from a tensor, which is taken
// from the checkpoint.
Status ApplyGgufGemma4Factors(Checkpoint& checkpoint);

}  // namespace cria
