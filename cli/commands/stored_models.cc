#include "cli/commands/stored_models.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/flags/nearest_name.h"
#include "cli/models/named_model.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/format_bytes.h"

namespace cria::cli {
namespace {

std::string DateText(std::time_t time, bool is_utc) {
  std::tm parts = {};
  if (is_utc) {
    gmtime_r(&time, &parts);
  } else {
    localtime_r(&time, &parts);
  }
  std::array<char, 64> text;
  return {text.data(),
          std::strftime(text.data(), text.size(), is_utc ? "%FT%TZ" : "%F %R", &parts)};
}

}  // namespace

nlohmann::ordered_json StoredModelJson(const StoredModel& model) {
  nlohmann::ordered_json json;
  const auto set = [&](const char* key, std::string text) { json[key] = std::move(text); };
  set("name", model.name);
  set("id", model.id);
  set("source", model.source);
  set("licence", model.licence);
  set("scheme", model.scheme);
  json["bytes"] = model.bytes;
  set("made_at", DateText(model.time, true));
  set("path", model.path.string());
  return json;
}

void PrintStoredModel(const StoredModel& model) {
  std::printf("%-28s  %s  %10s  %-6s  %s  %s\n", Printable(model.name).c_str(),
              model.id.substr(0, 8).c_str(), FormatBytes(model.bytes).c_str(),
              Printable(model.scheme).c_str(), DateText(model.time, false).c_str(),
              Printable(model.source).c_str());
}

Result<StoredModel> FindStoredModel(const ModelStore& store, const std::string& name) {
  CRIA_ASSIGN_OR_RETURN(std::optional<StoredModel> found, store.FindByName(name));
  if (found) return *std::move(found);
  if (const Result<NamedModel> named = FindNamedModel(name); named && named->source) {
    std::optional<StoredModel> stored = store.Find(named->source->Id());
    if (stored) return *std::move(stored);
  }
  std::vector<std::string> names;
  for (StoredModel& model : store.List()) names.push_back(std::move(model.name));
  return Fail(ErrorCode::kNotFound, Format("{}: no model in the store has this name{}; cria models "
                                           "lists those that are there",
                                           name, NearestName(name, names)));
}

}  // namespace cria::cli
