#include <langinfo.h>

#include <clocale>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/ends.h"
#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "cli/serve_launcher.h"
#include "cli/standard_streams.h"
#include "core/platform.h"

namespace {

int Run(int argc, char** argv) {
  using namespace cria;
  cli::CommandLine program("cria", "Runs Llama-family language models on small boards.");
  program.SetVersion("cria " CRIA_VERSION);
  cli::AddChatCommand(program);
  cli::AddRunCommand(program);
  cli::AddBenchCommand(program);
  cli::AddEvalCommand(program);
  cli::AddInfoCommand(program);
  cli::AddPackCommand(program);
  cli::AddPerplexityCommand(program);
  cli::AddPlanCommand(program);
  cli::AddServeCommand(program);
  cli::AddTemplateCommand(program);
  cli::AddTokenizeCommand(program);
  const bool is_server = argc > 1 && std::string_view(argv[1]) == "serve";
  const Status result =
      is_server ? cli::BecomeServer(std::span(argv, static_cast<size_t>(argc)).subspan(2))
                : program.Run(std::vector<std::string>(argv + 1, argv + argc));
  return result ? cli::FinishOutput("cria") : cli::ReportError("cria", result.error());
}

// What is typed is UTF-8, as nearly every terminal sends, even if the locale is another one or does
// not exist. The format of numbers does not depend on the locale.
void UseUtf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr ||
      std::string_view(nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

}  // namespace

int main(int argc, char** argv) {
  cria::cli::TakeClosedStreams();
  UseUtf8();
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
