#pragma once

#include <string>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Goes on as the program for aarch64 that CRIA_AARCH64_PROGRAM names, on QEMU's `processor`.
// Returns only where that cannot be.
Status RunEmulated(const std::string& processor, const std::vector<std::string>& arguments);

}  // namespace cria::cli
