#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cria/error.h"

namespace cria {

// The most bytes that a file of a tokenizer may have.
inline constexpr uint64_t kMaxTokenizerFileBytes = uint64_t{256} << 20;

// A whole file of the tokenizer, as it is.
Result<std::string> ReadTokenizerFile(const std::filesystem::path& path);

}  // namespace cria
