#pragma once

#include <filesystem>

#include "cria/error.h"

namespace cria {

// Whether a checkpoint is a Qwen3-Reranker. Its config.json is that of any Qwen3, and so the name
// of the folder, `_name_or_path` or the title of README.md tells, as for llama.cpp's converter.
Result<bool> IsQwen3Reranker(const std::filesystem::path& folder);

}  // namespace cria
