#pragma once

#include <optional>
#include <string>

#include "cli/models/model_source.h"
#include "cria/error.h"

namespace cria::cli {

// What a user means by the name of a model: a file, or a checkpoint that a model is made of.
struct NamedModel {
  std::string path;                   // The model file; empty: it is not known yet.
  std::optional<ModelSource> source;  // Absent: the path is a model file, or was meant to be one.
};

// Finds out what the name means: the path of a model file, of a GGUF file or of a checkpoint's
// folder, hf:ORG/NAME[:FILE.gguf], a short name (KnownModels), or the name of a model in the store.
// A path that cannot be a model stays one, so that opening it says what it is. Fails with kUsage
// and a proposal if nothing has this name.
Result<NamedModel> FindNamedModel(const std::string& name);

}  // namespace cria::cli
