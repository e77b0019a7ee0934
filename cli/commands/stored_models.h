#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/models/model_store.h"
#include "cria/error.h"

namespace cria::cli {

// What the commands models, show and rm have in common.

nlohmann::ordered_json StoredModelJson(const StoredModel& model);
// One line for people.
void PrintStoredModel(const StoredModel& model);

// The one model of the store that the user means: by its name, its source, a short name or the
// beginning of its id. Fails if there is none or are several.
Result<StoredModel> FindStoredModel(const ModelStore& store, const std::string& name);

}  // namespace cria::cli
