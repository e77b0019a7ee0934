#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/messages.h"
#include "core/platform.h"

namespace {

// llama.cpp's flags of several letters behind one dash, which CLI11 would read as a flag of one
// letter and its value.
std::vector<std::string> WithLongFlags(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "-sys") argument = "--system-prompt";
    if (argument == "-tb") argument = "--threads-batch";
  }
  // CLI11 takes a vector from its end.
  std::ranges::reverse(arguments);
  return arguments;
}

int Run(int argc, char** argv) {
  using namespace cria;
  CLI::App app("Runs Llama-family language models on small boards.", "cria");
  app.set_version_flag("--version", "cria " CRIA_VERSION);
  app.require_subcommand(1);

  Status result;
  cli::AddChatCommand(app, result);
  cli::AddRunCommand(app, result);
  cli::AddBenchCommand(app, result);
  cli::AddInfoCommand(app, result);
  cli::AddPackCommand(app, result);
  cli::AddPerplexityCommand(app, result);
  cli::AddPlanCommand(app, result);
  cli::AddTokenizeCommand(app, result);
  try {
    app.parse(WithLongFlags(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : cli::kExitUsage;
  }
  return result ? cli::FinishOutput("cria") : cli::ReportError("cria", result.error());
}

}  // namespace

int main(int argc, char** argv) {
  // What is typed is in the user's encoding; numbers stay as they are everywhere.
  std::setlocale(LC_CTYPE, "");
  cria::platform::UseOneHeap();
  cria::cli::InstallOutOfMemoryHandler("cria");
  try {
    return Run(argc, argv);
  } catch (const std::exception& exception) {
    // Nothing of the library's, whose errors are values, but of one beside it.
    std::fprintf(stderr, "cria: error: %s\n", exception.what());
    return cria::cli::kExitError;
  }
}
