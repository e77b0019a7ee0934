#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/flags/options.h"
#include "cli/models/get_model.h"
#include "cli/models/model_store.h"
#include "cli/models/named_model.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

struct PullOptions {
  std::string name;
  EngineOptions engine;
};

Status Pull(const PullOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const NamedModel named, FindNamedModel(options.name));
  std::string path = named.path;
  if (named.source) {
    CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
    CRIA_ASSIGN_OR_RETURN(const StoredModel stored,
                          GetStoredModel(store, *named.source, options.engine, /*asks=*/false));
    path = stored.path.string();
  } else {
    // Says what is wrong with the file.
    CRIA_RETURN_IF_ERROR(ModelFile::Open(path));
  }
  std::printf("%s\n", Printable(path).c_str());
  return {};
}

}  // namespace

void AddPullCommand(CommandLine& program) {
  auto options = std::make_shared<PullOptions>();
  CommandLine& command = program.AddCommand(
      "pull", "Download and convert a model, and keep it for the other commands");
  command
      .AddText("NAME", options->name,
               "hf:ORG/NAME[:FILE.gguf], a short name (cria models --known), a GGUF file or the "
               "folder of a checkpoint")
      .Required();
  command.SetAction([options] { return Pull(*options); });
}

}  // namespace cria::cli
