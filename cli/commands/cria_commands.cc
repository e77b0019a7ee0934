#include "cli/commands/cria_commands.h"

#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/command_line.h"

namespace cria::cli {
Status RunCommand(const std::vector<std::string>& arguments) {
  CommandLine program("cria", "Runs Llama-family language models on small boards.");
  program.SetVersion("cria " CRIA_VERSION);
  AddChatCommand(program);
  AddRunCommand(program);
  AddBatchCommand(program);
  AddBenchCommand(program);
  AddEmbedCommand(program);
  AddEvalCommand(program);
  AddInfoCommand(program);
  AddModelsCommand(program);
  AddPackCommand(program);
  AddPerplexityCommand(program);
  AddPlanCommand(program);
  AddPullCommand(program);
  AddRmCommand(program);
  AddServeCommand(program);
  AddShowCommand(program);
  AddTemplateCommand(program);
  AddTokenizeCommand(program);
  program.SetCommandOfFiles("chat");
  return program.Run(arguments);
}

}  // namespace cria::cli
