#pragma once

#include <filesystem>

#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// The tensors, keyed by name, of a file in which torch.save stored a table of tensors: a zip
// archive with a pickle and one entry for each storage. The tensors are inside the file.
Result<TensorSources> ReadTorchArchive(const std::filesystem::path& path);

}  // namespace cria
