#pragma once

#include <filesystem>

#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// The tensors of a file that torch.save wrote a table of tensors to, by the names that they have
// there: a zip archive of a pickle and one entry for each storage. Tensors lie inside the file.
Result<TensorSources> ReadTorchArchive(const std::filesystem::path& path);

}  // namespace cria
