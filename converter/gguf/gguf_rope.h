#pragma once

#include <cstdint>
#include <string_view>

#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads the rotary embeddings' parameters for layers without a window from the keys of
// `architecture`: rope_theta and rope_scaling. The result means what llama.cpp computes.
// If longrope is possible, its factor of attention is left to ApplyGgufLongrope.
Result<LayerKind> ReadGgufRope(const GgufMetadata& metadata, std::string_view architecture,
                               uint32_t context_length, bool has_longrope = false);

}  // namespace cria
