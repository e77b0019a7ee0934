#include "cli/commands/cria_commands.h"

#include <langinfo.h>

#include <clocale>
#include <string_view>

#include "cli/commands/commands.h"
#include "cli/ends.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/standard_streams.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

// What is typed is UTF-8, as nearly every terminal sends, even if the locale is another one or does
// not exist. The format of numbers does not depend on the locale.
void UseUtf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr ||
      std::string_view(nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

}  // namespace

void PrepareProgram() {
  TakeClosedStreams();
  UseUtf8();
  platform::UseOneHeap();
  InstallEndHandlers("cria", "ask for less context or fewer threads");
}

Status RunCommand(const std::vector<std::string>& arguments) {
  CommandLine program("cria", "Runs Llama-family language models on small boards.");
  program.SetVersion("cria " CRIA_VERSION);
  AddChatCommand(program);
  AddRunCommand(program);
  AddBenchCommand(program);
  AddEvalCommand(program);
  AddInfoCommand(program);
  AddPackCommand(program);
  AddPerplexityCommand(program);
  AddPlanCommand(program);
  AddServeCommand(program);
  AddTemplateCommand(program);
  AddTokenizeCommand(program);
  program.SetCommandOfFiles("chat");
  return program.Run(arguments);
}

}  // namespace cria::cli
