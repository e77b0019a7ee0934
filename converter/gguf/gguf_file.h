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

// Whether the file begins as a GGUF file does. One that cannot be read does not.
bool IsGgufFile(const std::filesystem::path& path);

// What one GGUF file says, as the specification in ggml's docs/gguf.md has it: versions 2 and 3,
// little-endian. Tensors have ggml's names. Those whose type is not known are errors that name it.
struct GgufFile {
  GgufMetadata metadata;
  std::vector<TensorSource> tensors;  // In the order of the file. Inside it, and none overlaps.
};

// Memory is bounded by the metadata, of which the file may have at most 256 MiB.
Result<GgufFile> ReadGgufFile(const std::filesystem::path& path);

}  // namespace cria
