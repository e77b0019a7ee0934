#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "cli/ends.h"
#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_options.h"
#include "cli/started_by_mpi.h"
#include "cli/terminal/standard_streams.h"
#include "core/platform.h"

namespace {

int Run(int argc, char** argv) {
  using namespace cria;
  cli::CommandLine program("cria-serve",
                           "Serves a language model of the Llama family over HTTP, with the APIs "
                           "of OpenAI, llama-server and Ollama, and a page for browsers.");
  program.SetVersion("cria-serve " CRIA_VERSION);
  cli::ServeOptions options;
  cli::AddServeOptions(program, options);
  program.SetAction([&options]() -> Status {
    if (!cli::IsStartedByMpi()) return cli::Serve(std::move(options));
    return Fail(ErrorCode::kUsage, "cria-serve serves on one board: start `mpirun … cria serve`");
  });
  const Status result = program.Run(std::vector<std::string>(argv + 1, argv + argc));
  return result ? cli::FinishOutput("cria-serve") : cli::ReportError("cria-serve", result.error());
}

}  // namespace

int main(int argc, char** argv) {
  cria::cli::TakeClosedStreams();
  cria::platform::UseOneHeap();
  cria::cli::InstallEndHandlers("cria-serve", "ask for less context or fewer threads");
  try {
    return Run(argc, argv);
  } catch (const std::exception& exception) {
    // Errors of Cria are values; only another library throws here.
    std::fprintf(stderr, "cria-serve: error: %s\n", cria::cli::Printable(exception.what()).c_str());
    return cria::cli::kExitError;
  }
}
