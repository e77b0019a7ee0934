#pragma once

#include <filesystem>

#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads Hugging Face's config.json. A field that changes the mathematics is either understood or an
// error that names it; fields that only concern training or generation are left alone.
Result<ModelConfig> ReadHfConfig(const std::filesystem::path& path);

}  // namespace cria
