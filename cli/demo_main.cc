#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/command_line.h"
#include "cli/program.h"

namespace {

using namespace cria;

// `cria chat` without the other commands, which take most of the time of compiling cria.
Status RunChat(std::span<char* const> arguments) {
  cli::CommandLine program("cria",
                           "Chats with the demo model; './dev cria' has the other commands.");
  program.SetVersion("cria " CRIA_VERSION);
  cli::AddChatCommand(program);
  return program.Run(std::vector<std::string>(arguments.begin(), arguments.end()));
}

}  // namespace

int main(int argc, char** argv) { return cli::RunMain(argc, argv, RunChat); }
