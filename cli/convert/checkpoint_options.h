#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "converter/convert.h"

namespace cria::cli {

// Adds the options for the checkpoint to convert and for how its tensors are stored.
void AddCheckpointOptions(CommandLine& command, std::string& checkpoint, ConvertOptions& options);

}  // namespace cria::cli
