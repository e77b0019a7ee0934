#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/models/model_source.h"
#include "cria/error.h"

namespace cria::cli {

// A model file that was made of a checkpoint and is kept.
struct StoredModel {
  std::string id;       // ModelSource::Id, and the name of its folder in the store.
  std::string name;     // "Qwen3-0.6B"
  std::string source;   // ModelSource::checkpoint
  std::string licence;  // Empty if it is not known.
  std::string scheme;   // What most bytes of the matrices are stored in: "w4g64".
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::time_t time = 0;  // When it was made, in seconds since 1970.
};

// The folder in which models that were made of checkpoints are kept: CRIA_MODELS, or cria/models in
// the user's folder for data. It has a folder for each model, whose name is the Id of its source,
// with the model file and MODEL.json; NewEntry makes them.
class ModelStore {
 public:
  // Removes what a process that was killed has left. The folder need not exist. Fails with kUsage
  // if no folder is known.
  static Result<ModelStore> Open();

  const std::filesystem::path& folder() const { return folder_; }
  // Where unfinished downloads are kept, so that they can go on.
  std::filesystem::path downloads() const { return folder_ / ".downloads"; }

  // Sorted by name.
  std::vector<StoredModel> List() const;
  std::optional<StoredModel> Find(const std::string& id) const;
  // The model that a user means: by name, by source, or by at least eight digits of the id. Fails
  // with kUsage and their ids if there are several.
  Result<std::optional<StoredModel>> FindByName(std::string_view name) const;

 private:
  explicit ModelStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

// The name of the description of a model in its folder.
inline constexpr const char* kDescriptionName = "MODEL.json";

}  // namespace cria::cli
