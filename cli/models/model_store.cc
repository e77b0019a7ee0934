#include "cli/models/model_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <system_error>

#include "cli/models/json_object.h"
#include "cli/models/new_entry.h"
#include "core/format.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdDigits = 32;
constexpr size_t kLeastDigits = 8;  // An id that a user gives has at least so many.

bool IsId(const std::string& name) {
  return name.size() == kIdDigits && name.find_first_not_of("0123456789abcdef") == name.npos;
}

// The text of MODEL.json; empty if it cannot be read.
std::string ReadDescription(const fs::path& path) {
  constexpr uint64_t kMaxBytes = 1'000'000;
  const auto file = platform::File::Open(path.string());
  if (!file || file->size_bytes() > kMaxBytes) return "";
  std::string text(file->size_bytes(), '\0');
  if (!file->ReadAt(0, std::as_writable_bytes(std::span(text)))) return "";
  return text;
}

}  // namespace

Result<ModelStore> ModelStore::Open() {
  const char* const own = std::getenv("CRIA_MODELS");
  std::string folder = own == nullptr ? "" : own;
  if (folder.empty()) {
    folder = platform::DataFolder();
    if (folder.empty()) {
      return Fail(ErrorCode::kUsage,
                  "there is no folder for models, because HOME is not set; CRIA_MODELS names one");
    }
    folder += "/models";
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error);
  ModelStore store(error ? fs::path(folder) : absolute);
  RemoveAbandonedEntries(store.folder());
  return store;
}

std::vector<StoredModel> ModelStore::List() const {
  std::vector<StoredModel> models;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::optional<StoredModel> model = Find(entry->path().filename().string());
    if (model) models.push_back(*std::move(model));
  }
  std::ranges::sort(models, [](const StoredModel& a, const StoredModel& b) {
    return a.name != b.name ? a.name < b.name : a.id < b.id;
  });
  return models;
}

std::optional<StoredModel> ModelStore::Find(const std::string& id) const {
  if (!IsId(id)) return std::nullopt;
  const fs::path folder = folder_ / id;
  const std::string text = ReadDescription(folder / kDescriptionName);
  JsonObject description(text);
  if (!description.is_object()) return std::nullopt;
  StoredModel model = {.id = id,
                       .name = description.Text("name"),
                       .source = description.Text("source"),
                       .licence = description.Text("licence"),
                       .scheme = description.Text("scheme")};
  // The description is no reason to leave the folder.
  model.path = folder / fs::path(description.Text("file")).filename();
  struct stat status = {};
  if (stat(model.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  model.bytes = static_cast<uint64_t>(status.st_size);
  model.time = status.st_mtime;
  return model;
}

Result<std::optional<StoredModel>> ModelStore::FindByName(std::string_view name) const {
  std::vector<StoredModel> models = List();
  std::erase_if(models, [&](const StoredModel& model) {
    const bool is_id = name.size() >= kLeastDigits && model.id.starts_with(name);
    return !is_id && model.name != name && model.source != name;
  });
  if (models.empty()) return std::optional<StoredModel>();
  if (models.size() == 1) return std::optional(std::move(models.front()));
  std::string ids;
  for (const StoredModel& model : models) {
    ids += Format("{}{} ({})", ids.empty() ? "" : ", ", model.id.substr(0, kLeastDigits),
                  model.source);
  }
  return Fail(ErrorCode::kUsage,
              Format("{}: several models have this name; give one of {}", name, ids));
}

}  // namespace cria::cli
