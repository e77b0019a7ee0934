#pragma once

#include <string>

#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// Loads the model, fills its context, and prints what the process used beside what was planned.
Status RunMemoryBench(const std::string& model_path, const EngineOptions& options, bool json);

}  // namespace cria::cli
