#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "converter/gguf/gguf_metadata.h"
#include "converter/input/tensor_source.h"
#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// The contents of one GGUF file, by the specification in ggml's docs/gguf.md, versions 2 and 3,
// little-endian. Tensors have ggml's names. A tensor type that is not known is an error that names
// it.
struct GgufFile {
  GgufMetadata metadata;
  std::vector<TensorSource>
      tensors;  // In the order of the file. They are inside the file and do not overlap.
};

// The metadata may have at most 256 MiB, which limits the memory that this takes.
Result<GgufFile> ReadGgufFile(const std::filesystem::path& path);

}  // namespace cria
