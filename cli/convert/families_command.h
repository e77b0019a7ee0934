#pragma once

#include "cli/flags/command_line.h"

namespace cria::cli {

// Adds the command `families`, which prints the tables of families of docs/models.md.
void AddFamiliesCommand(CommandLine& program);

}  // namespace cria::cli
