#pragma once

#include "converter/gguf/gguf_architectures.h"
#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Sets what llama.cpp knows of gpt-oss without keys. Fails with kUnsupported if the experts are
// chosen in another way than gpt-oss's.
Status ReadGgufGptOss(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                      ModelConfig& config);

}  // namespace cria
