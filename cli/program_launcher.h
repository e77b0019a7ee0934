#pragma once

#include <span>
#include <string_view>

#include "cria/error.h"

namespace cria::cli {

// Replaces this program by another one of Cria's, which was installed or built with it and gets the
// arguments. Returns only if that fails; `absent` is the sentence if there is no such program.
Status BecomeProgram(const char* name, std::string_view absent, std::span<char* const> arguments);

// Whether mpirun, or a program like it, started this process beside others.
bool IsStartedByMpi();

}  // namespace cria::cli
