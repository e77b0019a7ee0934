#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "converter/convert.h"

namespace cria::cli {

// Which checkpoint to convert, and how its tensors are stored.
void AddCheckpointOptions(CLI::App& app, std::string& checkpoint, ConvertOptions& options);

}  // namespace cria::cli
