#pragma once

#include "cli/flags/command_line.h"

namespace cria::cli {

// Adds the command `cost`, by which cria asks what it takes to get a model before it asks its user.
void AddCostCommand(CommandLine& program);

}  // namespace cria::cli
