#include <clocale>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/ends.h"
#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "core/platform.h"

namespace {

int Run(int argc, char** argv) {
  using namespace cria;
  cli::CommandLine program("cria", "Runs Llama-family language models on small boards.");
  program.SetVersion("cria " CRIA_VERSION);
  cli::AddChatCommand(program);
  cli::AddRunCommand(program);
  cli::AddBenchCommand(program);
  cli::AddInfoCommand(program);
  cli::AddPackCommand(program);
  cli::AddPerplexityCommand(program);
  cli::AddPlanCommand(program);
  cli::AddTokenizeCommand(program);
  const Status result = program.Run(std::vector<std::string>(argv + 1, argv + argc));
  return result ? cli::FinishOutput("cria") : cli::ReportError("cria", result.error());
}

}  // namespace

int main(int argc, char** argv) {
  // Text is typed in the user's encoding; the format of numbers does not depend on the locale.
  std::setlocale(LC_CTYPE, "");
  cria::platform::UseOneHeap();
  cria::cli::InstallEndHandlers("cria");
  try {
    return Run(argc, argv);
  } catch (const std::exception& exception) {
    // Errors of Cria are values; only another library throws here.
    std::fprintf(stderr, "cria: error: %s\n", cria::cli::Printable(exception.what()).c_str());
    return cria::cli::kExitError;
  }
}
