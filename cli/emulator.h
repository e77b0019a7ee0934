#pragma once

#include <string>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Replaces this process by the aarch64 program in CRIA_AARCH64_PROGRAM, under QEMU as `processor`.
// Returns only if that is not possible.
Status RunEmulated(const std::string& processor, const std::vector<std::string>& arguments);

}  // namespace cria::cli
