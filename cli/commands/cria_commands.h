#pragma once

#include <string>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Runs a command of the programs cria and cria-mpi.
Status RunCommand(const std::vector<std::string>& arguments);

}  // namespace cria::cli
