#pragma once

#include <cstdint>
#include <string_view>

#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What an architecture of GGUF files is called by Hugging Face, and how its files differ.
struct GgufArchitecture {
  std::string_view name;  // `general.architecture`
  std::string_view hugging_face;
  // Rows of queries and keys are stored with those that turn together side by side.
  bool is_interleaved = false;
  bool qkv_bias = false;  // Always; others have the biases that there are tensors of.
  bool qk_norm = false;
};

// The architecture of a file; one that is not known is an error that names it.
Result<GgufArchitecture> ReadGgufArchitecture(const GgufMetadata& metadata);

// The configuration that the metadata of such a file describes, but for what tensors tell: the
// vocabulary's size, which is given, whether the head is tied, biases that not every file of the
// architecture has, and Llama 3's rotary scaling. Not
// validated. A key that changes the mathematics is either understood or an error that names it.
Result<ModelConfig> ReadGgufConfig(const GgufMetadata& metadata,
                                   const GgufArchitecture& architecture, uint32_t vocab_size);

}  // namespace cria
