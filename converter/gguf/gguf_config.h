#pragma once

#include <cstdint>
#include <string_view>

#include "converter/gguf/gguf_metadata.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// An architecture of GGUF files: its Hugging Face name, and how its files differ.
struct GgufArchitecture {
  std::string_view name;  // `general.architecture`
  std::string_view hugging_face;
  // Rows of queries and keys that rope rotates together are stored next to each other.
  bool is_interleaved = false;
  bool qkv_bias =
      false;  // Always has biases; other architectures have them if the file has their tensors.
  bool qk_norm = false;
};

// The architecture of a file; fails if it is not known, and names it.
Result<GgufArchitecture> ReadGgufArchitecture(const GgufMetadata& metadata);

// The configuration in the metadata, except what tensors decide: the size of the vocabulary, which
// is a parameter, whether the head is tied, biases that only some files of the architecture have,
// and Llama 3's rotary scaling. It is not validated. If a key that changes the computation is not
// supported, fails and names the key.
Result<ModelConfig> ReadGgufConfig(const GgufMetadata& metadata,
                                   const GgufArchitecture& architecture, uint32_t vocab_size);

}  // namespace cria
