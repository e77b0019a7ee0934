#pragma once

#include <string>

#include "cria/error.h"

namespace cria::cli {

// All of a file; "-" is standard input.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace cria::cli
