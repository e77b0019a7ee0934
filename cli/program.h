#pragma once

#include <span>

#include "cria/error.h"

namespace cria::cli {

// The main function of cria, cria-mpi and cria-demo: sets up what every command
// needs, runs `run` with the arguments behind the program's name, and reports how it ended. Returns
// the process's exit code.
int RunMain(int argc, char** argv, Status (*run)(std::span<char* const> arguments));

}  // namespace cria::cli
