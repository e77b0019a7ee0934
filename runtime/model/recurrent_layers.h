#pragma once

#include <string>

#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Checks the fields of layers that keep a state of fixed size instead of keys and values: short
// convolutions, linear attention and Mamba-2. Kinds of layers are checked.
Status ValidateRecurrentLayers(const ModelConfig& config);

// Checks that one kind of such layers has no field of attention. Kinds that compute the same must
// be equal, because decoders and session files compare them. `prefix` goes before the names of its
// fields in errors.
Status ValidateRecurrentKind(const LayerKind& kind, const std::string& prefix);

}  // namespace cria
