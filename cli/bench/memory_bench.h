#pragma once

#include <string>

#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// Loads the model, fills its context, and prints the memory used and the planned memory.
Status RunMemoryBench(const std::string& model_path, const EngineOptions& options, bool json);

}  // namespace cria::cli
