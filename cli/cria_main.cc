#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/cria_commands.h"
#include "cli/program.h"
#include "cli/program_launcher.h"
#include "cli/started_by_mpi.h"

namespace {

using namespace cria;

Status RunProgram(std::span<char* const> arguments) {
  // --ranks, --rank, --rank-wire and others.
  const auto names_ranks = [](std::string_view argument) { return argument.starts_with("--rank"); };
  if (cli::IsStartedByMpi() || std::ranges::any_of(arguments, names_ranks)) {
    return cli::BecomeProgram("cria-mpi",
                              "one model on several ranks is the program cria-mpi, which is not "
                              "installed: install the package cria-mpi, or build it where MPI is "
                              "installed, such as Debian's mpi-default-dev",
                              arguments);
  }
  if (!arguments.empty() && std::string_view(arguments.front()) == "serve") {
    return cli::BecomeProgram(
        "cria-serve",
        "cria serve is the program cria-serve, which is not installed; it has "
        "a package of its own: apt install ./cria-serve_*.deb",
        arguments.subspan(1));
  }
  return cli::RunCommand({arguments.begin(), arguments.end()});
}

}  // namespace

namespace cria::cli {

// For the help: RunProgram takes the command before it is parsed.
void AddServeCommand(CommandLine& program) {
  program.AddCommand("serve", "Serve a model over HTTP: the program cria-serve").SetAction([] {
    return Status(Fail(ErrorCode::kUsage, "serve must be the first argument"));
  });
}

}  // namespace cria::cli

int main(int argc, char** argv) { return cli::RunMain(argc, argv, RunProgram); }
