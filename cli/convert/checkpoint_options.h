#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "converter/convert.h"

namespace cria::cli {

// Which checkpoint to convert, and how its tensors are stored.
void AddCheckpointOptions(CommandLine& command, std::string& checkpoint, ConvertOptions& options);

}  // namespace cria::cli
