#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/stored_models.h"
#include "cli/commands/unused_file.h"
#include "cli/models/model_store.h"
#include "cli/models/new_entry.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "model/file_layout.h"

namespace cria::cli {
namespace {

Status RemoveModel(const std::string& name) {
  CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
  CRIA_ASSIGN_OR_RETURN(const StoredModel model, FindStoredModel(store, name));
  const UnusedFile unused(model.path.string(), kModelMagic);
  if (unused.is_used()) {
    return Fail(ErrorCode::kUsage, Format("{}: {} {}; end that program first", model.name,
                                          model.path.string(), unused.defect()));
  }
  CRIA_RETURN_IF_ERROR(RemoveStoredEntry(store.folder(), model.id));
  std::printf("%s is removed, which frees %s\n", Printable(model.name).c_str(),
              FormatBytes(model.bytes).c_str());
  return {};
}

}  // namespace

void AddRmCommand(CommandLine& program) {
  auto name = std::make_shared<std::string>();
  CommandLine& command =
      program.AddCommand("rm", "Remove a model that was downloaded or converted");
  command
      .AddText(
          "NAME", *name,
          "The model's name, its source, or the beginning of its id, as cria models lists them")
      .Required();
  command.SetAction([name] { return RemoveModel(*name); });
}

}  // namespace cria::cli
