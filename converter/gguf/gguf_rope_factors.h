#pragma once

#include "converter/gguf/gguf_architectures.h"
#include "converter/gguf/gguf_metadata.h"
#include "converter/input/tensor_source.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Removes tensors with factors of rotary frequencies from `tensors`, and sets rope scaling
// accordingly: Llama 3's or longrope.
Status ApplyGgufRopeFactors(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                            TensorSources& tensors, ModelConfig& config);

}  // namespace cria
