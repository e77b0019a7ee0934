#pragma once

#include <filesystem>
#include <string_view>

#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// Reads the header of a safetensors file: an eight-byte length, then JSON with each tensor's type,
// shape and byte range; the tensors follow. Ranges must be inside the file, agree with the shapes,
// and cover the file without gap or overlap, as the format requires.
Result<TensorSources> ReadSafetensors(const std::filesystem::path& path);

// The error for a tensor of a file whose dtype is no type of weights.
std::unexpected<Error> UnsupportedDtype(std::string_view path, std::string_view tensor,
                                        std::string_view dtype);

}  // namespace cria
