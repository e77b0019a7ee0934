#pragma once

#include <filesystem>

#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads Hugging Face's config.json. If a field that changes the computation is not supported, fails
// and names the field; fields that only concern training or generation are ignored.
Result<ModelConfig> ReadHfConfig(const std::filesystem::path& path);

}  // namespace cria
