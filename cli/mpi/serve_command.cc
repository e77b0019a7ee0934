#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_options.h"

namespace cria::cli {

void AddServeCommand(CommandLine& program) {
  auto options = std::make_shared<ServeOptions>();
  CommandLine& command = program.AddCommand("serve", "Serve a model over HTTP");
  AddServeOptions(command, *options);
  command.SetAction([options] { return Serve(std::move(*options)); });
}

}  // namespace cria::cli
