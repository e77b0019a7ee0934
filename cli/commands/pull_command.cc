#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/models/get_model.h"
#include "cli/terminal/printable.h"
#include "model/model_file.h"

namespace cria::cli {
namespace {

Status Pull(const std::string& name) {
  CRIA_ASSIGN_OR_RETURN(const std::string path, GetModel({.name = name, .agrees = true}, {}));
  // A name may be the path of a file, and opening it says what is wrong with it.
  CRIA_RETURN_IF_ERROR(ModelFile::Open(path));
  std::printf("%s\n", Printable(path).c_str());
  return {};
}

}  // namespace

void AddPullCommand(CommandLine& program) {
  auto name = std::make_shared<std::string>();
  CommandLine& command = program.AddCommand(
      "pull", "Download and convert a model, and keep it for the other commands");
  command
      .AddText("NAME", *name,
               "hf:ORG/NAME[:FILE.gguf], a short name (cria models --known), a GGUF file or the "
               "folder of a checkpoint")
      .Required();
  command.SetAction([name] { return Pull(*name); });
}

}  // namespace cria::cli
