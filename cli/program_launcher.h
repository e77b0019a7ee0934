#pragma once

#include <span>
#include <string_view>

#include "cria/error.h"

namespace cria::cli {

// Replaces this program by another one of Cria's, which was installed or built with it and gets the
// arguments. Returns only if that fails; `absent` is the sentence if there is no such program.
Status BecomeProgram(const char* name, std::string_view absent, std::span<char* const> arguments);

}  // namespace cria::cli
