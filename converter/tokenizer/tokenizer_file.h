#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cria/error.h"

namespace cria {

// Maximum size of a tokenizer file in bytes.
inline constexpr uint64_t kMaxTokenizerFileBytes = uint64_t{256} << 20;

// The contents of a tokenizer file.
Result<std::string> ReadTokenizerFile(const std::filesystem::path& path);

// Reads a chat template in a file of its own, which must be UTF-8, in the same way.
Result<std::string> ReadTemplateFile(const std::filesystem::path& path);

}  // namespace cria
