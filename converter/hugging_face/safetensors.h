#pragma once

#include <filesystem>

#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// Reads the header of a safetensors file: an eight-byte length, JSON that says each tensor's type,
// shape and byte range, then the tensors. Ranges must lie in the file, agree with the shapes, and
// cover the file without gap or overlap, as the format demands.
Result<TensorSources> ReadSafetensors(const std::filesystem::path& path);

}  // namespace cria
