#pragma once

#include <CLI/CLI.hpp>

#include "cria/error.h"

namespace cria::cli {

// Each adds one command to cria; when it is chosen, it stores its result in `result`.
void AddBenchCommand(CLI::App& app, Status& result);
void AddRunCommand(CLI::App& app, Status& result);
void AddChatCommand(CLI::App& app, Status& result);
void AddInfoCommand(CLI::App& app, Status& result);
void AddPackCommand(CLI::App& app, Status& result);
void AddPerplexityCommand(CLI::App& app, Status& result);
void AddPlanCommand(CLI::App& app, Status& result);
void AddTokenizeCommand(CLI::App& app, Status& result);

}  // namespace cria::cli
