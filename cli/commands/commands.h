#pragma once

#include "cli/flags/command_line.h"

namespace cria::cli {

// Each function adds one command to cria.
void AddBatchCommand(CommandLine& program);
void AddBenchCommand(CommandLine& program);
void AddEmbedCommand(CommandLine& program);
void AddEvalCommand(CommandLine& program);
void AddRunCommand(CommandLine& program);
void AddChatCommand(CommandLine& program);
void AddInfoCommand(CommandLine& program);
void AddModelsCommand(CommandLine& program);
void AddPackCommand(CommandLine& program);
void AddPerplexityCommand(CommandLine& program);
void AddPlanCommand(CommandLine& program);
void AddPullCommand(CommandLine& program);
void AddRmCommand(CommandLine& program);
// The programs cria and cria-mpi each have their own: cria becomes cria-serve.
void AddServeCommand(CommandLine& program);
void AddShowCommand(CommandLine& program);
void AddTemplateCommand(CommandLine& program);
void AddTokenizeCommand(CommandLine& program);

}  // namespace cria::cli
