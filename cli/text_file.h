#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// All of a file; "-" is standard input. Fails with kInvalidFile if it is longer than `max_bytes`.
Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes = SIZE_MAX);

}  // namespace cria::cli
