#pragma once

#include <memory>
#include <string>

#include "llm/engine.h"
#include "xnn/packed_weights.h"

namespace cria::cli {

// Loads a model. If its weights must be packed first, shows the progress of this on stderr, and
// Ctrl-C stops it.
Result<std::unique_ptr<Engine>> LoadEngine(const std::string& model_path, EngineOptions options);

}  // namespace cria::cli
