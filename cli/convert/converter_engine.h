#pragma once

#include <memory>

#include "core/platform.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// Loads a model that is run during its conversion. Errors have no remedy that only the commands of
// `cria` have flags for.
Result<std::unique_ptr<Engine>> LoadInConverter(platform::File file, const EngineOptions& options);

}  // namespace cria::cli
