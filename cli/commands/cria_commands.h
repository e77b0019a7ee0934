#pragma once

#include <string>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// What the programs cria and cria-mpi have in common.

// Sets up what every command needs. Call it before anything else.
void PrepareProgram();
// Runs a command of cria.
Status RunCommand(const std::vector<std::string>& arguments);

}  // namespace cria::cli
