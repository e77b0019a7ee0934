#pragma once

#include <cstdint>

#include "converter/checkpoint/checkpoint.h"
#include "converter/gguf/gguf_architectures.h"
#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// The configuration in the metadata, except what tensors decide: the size of the vocabulary, which
// is a parameter, whether the head is tied, biases that only some files of the architecture have,
// Llama 3's rotary scaling and longrope. It is not validated. If a key that changes the computation
// is not supported, fails and names the key.
Result<ModelConfig> ReadGgufConfig(const GgufMetadata& metadata,
                                   const GgufArchitecture& architecture, uint32_t vocab_size);

// The numbers in the metadata that are folded into weights. llama.cpp's converter has added one to
// Gemma's norms already.
Result<WeightFolding> ReadGgufFolding(const GgufMetadata& metadata,
                                      const GgufArchitecture& architecture,
                                      const ModelConfig& config);

}  // namespace cria
