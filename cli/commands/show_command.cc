#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/stored_models.h"
#include "cli/models/model_store.h"
#include "cli/report.h"
#include "cli/terminal/printable.h"

namespace cria::cli {
namespace {

struct ShowOptions {
  std::string name;
  bool json = false;
};

Status ShowModel(const ShowOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
  CRIA_ASSIGN_OR_RETURN(const StoredModel model, FindStoredModel(store, options.name));
  const nlohmann::ordered_json json = StoredModelJson(model);
  if (options.json) {
    PrintJson(json);
    return {};
  }
  for (const auto& [key, value] : json.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::printf("%-8s %s\n", key.c_str(), Printable(text).c_str());
  }
  return {};
}

}  // namespace

void AddShowCommand(CommandLine& program) {
  auto options = std::make_shared<ShowOptions>();
  CommandLine& command = program.AddCommand(
      "show", "Show where a model of the store comes from and where its file is");
  command
      .AddText(
          "NAME", options->name,
          "The model's name, its source, or the beginning of its id, as cria models lists them")
      .Required();
  command.AddFlag("--json", options->json, "Print JSON");
  command.SetAction([options] { return ShowModel(*options); });
}

}  // namespace cria::cli
