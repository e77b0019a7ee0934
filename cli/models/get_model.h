#pragma once

#include <string>

#include "cli/models/model_choice.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// The path of the model file that the choice means, as FindNamedModel says. If it is a checkpoint
// of which no model is in the store, says what getting one takes, asks at a terminal, and lets
// cria-convert download and convert it. `options` are for the memory that it tells of.
Result<std::string> GetModel(const ModelChoice& choice, const EngineOptions& options);

}  // namespace cria::cli
