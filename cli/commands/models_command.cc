#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/stored_models.h"
#include "cli/models/known_models.h"
#include "cli/models/model_store.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/format_bytes.h"

namespace cria::cli {
namespace {

struct ModelsOptions {
  bool known = false;
  bool json = false;
};

nlohmann::ordered_json KnownModelJson(const KnownModel& model) {
  nlohmann::ordered_json json;
  const auto set = [&](const char* key, std::string_view text) { json[key] = std::string(text); };
  set("name", model.name);
  set("source", model.source);
  set("licence", model.licence);
  json["download_bytes"] = model.download_bytes;
  json["file_bytes"] = model.file_bytes;
  json["peak_bytes"] = model.peak_bytes;
  set("smallest_board", SmallestBoard(model));
  return json;
}

void PrintKnownModels() {
  const auto print = [](const std::string& name, const std::string& download,
                        const std::string& file, const std::string& memory,
                        const std::string& board, const std::string& licence,
                        const std::string& source) {
    std::printf("%-14s  %9s  %9s  %9s  %-13s  %-10s  %s\n", name.c_str(), download.c_str(),
                file.c_str(), memory.c_str(), board.c_str(), licence.c_str(), source.c_str());
  };
  print("name", "download", "file", "memory", "board", "licence", "source");
  for (const KnownModel& model : KnownModels()) {
    print(std::string(model.name), FormatBytes(model.download_bytes), FormatBytes(model.file_bytes),
          FormatBytes(model.peak_bytes), std::string(SmallestBoard(model)),
          std::string(model.licence), std::string(model.source));
  }
}

Status ListModels(const ModelsOptions& options) {
  if (options.known && !options.json) {
    PrintKnownModels();
    return {};
  }
  auto list = nlohmann::ordered_json::array();
  if (options.known) {
    for (const KnownModel& model : KnownModels()) list.push_back(KnownModelJson(model));
  } else {
    CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
    const std::vector<StoredModel> models = store.List();
    for (const StoredModel& model : models) {
      if (options.json) list.push_back(StoredModelJson(model));
      if (!options.json) PrintStoredModel(model);
    }
    if (models.empty() && !options.json) {
      std::fprintf(stderr, "cria: no models are in %s yet; cria models --known lists short names\n",
                   Printable(store.folder().string()).c_str());
    }
  }
  if (options.json) {
    using Handler = nlohmann::ordered_json::error_handler_t;
    std::printf("%s\n", list.dump(2, ' ', false, Handler::replace).c_str());
  }
  return {};
}

}  // namespace

void AddModelsCommand(CommandLine& program) {
  auto options = std::make_shared<ModelsOptions>();
  CommandLine& command =
      program.AddCommand("models", "List the models that were downloaded or converted");
  command.AddFlag("--known", options->known,
                  "List the models that have short names, with sizes, memory and the smallest "
                  "board that has it");
  command.AddFlag("--json", options->json, "Print JSON");
  command.SetAction([options] { return ListModels(*options); });
}

}  // namespace cria::cli
