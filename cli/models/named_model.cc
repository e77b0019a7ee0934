#include "cli/models/named_model.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/flags/nearest_name.h"
#include "cli/models/known_models.h"
#include "cli/models/model_store.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// Whether the name can only be meant as a path, of which opening the file says what is wrong.
bool LooksLikePath(std::string_view name) {
  return name.empty() || name.starts_with('/') || name.starts_with('.') || name.starts_with('~') ||
         name.ends_with(".cria") || name.ends_with(".gguf") || name.ends_with(".bin");
}

std::unexpected<Error> FailOnHubName(std::string_view name) {
  return Fail(ErrorCode::kUsage,
              Format("\"{}\" is no name of a model; one on the hub is written hf:ORG/NAME or "
                     "hf:ORG/NAME:FILE.gguf",
                     name));
}

std::unexpected<Error> FailOnUnknownName(const std::string& name, const ModelStore& store) {
  // "ORG/NAME" may lack what the hub's names begin with.
  const size_t slash = name.find('/');
  if (slash != name.npos && slash == name.rfind('/') && slash + 1 < name.size()) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: does not exist; a model on the hub is written hf:{}", name, name));
  }
  std::vector<std::string> names;
  for (const KnownModel& model : KnownModels()) names.emplace_back(model.name);
  for (StoredModel& model : store.List()) names.push_back(std::move(model.name));
  return Fail(ErrorCode::kNotFound,
              Format("{}: is neither a file nor the name of a model{}; cria models --known lists "
                     "names",
                     name, NearestName(name, names)));
}

}  // namespace

Result<NamedModel> FindNamedModel(const std::string& name) {
  std::error_code ignored;
  if (std::optional<ModelSource> source = FindCheckpoint(name)) {
    return NamedModel{.source = std::move(source)};
  }
  if (std::filesystem::exists(name, ignored)) return NamedModel{.path = name};
  if (name.starts_with("hf:")) return FailOnHubName(name);
  if (const KnownModel* const known = FindKnownModel(name)) {
    return NamedModel{.source = FindCheckpoint(std::string(known->source))};
  }
  if (LooksLikePath(name)) return NamedModel{.path = name};
  CRIA_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::Open());
  CRIA_ASSIGN_OR_RETURN(const std::optional<StoredModel> stored, store.FindByName(name));
  if (!stored) return FailOnUnknownName(name, store);
  return NamedModel{.path = stored->path.string()};
}

}  // namespace cria::cli
