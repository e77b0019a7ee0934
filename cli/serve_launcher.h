#pragma once

#include <span>

#include "cli/flags/command_line.h"

namespace cria::cli {

// Lists the command "serve", which is the program cria-serve.
void AddServeCommand(CommandLine& program);

// Replaces this program by cria-serve, which gets the arguments. Returns only if there is no such
// program.
Status BecomeServer(std::span<char* const> arguments);

}  // namespace cria::cli
