#pragma once

#include <memory>
#include <string>

#include "llm/engine.h"
#include "xnn/packed_weights.h"

namespace cria::cli {

// Loads a model, and tells on stderr how packing goes, if that must be first. Ctrl-C stops it.
Result<std::unique_ptr<Engine>> LoadEngine(const std::string& model_path, EngineOptions options);

}  // namespace cria::cli
