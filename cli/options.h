#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "llm/engine.h"
#include "llm/sampler.h"

namespace cria::cli {

// Flags that mean the same in several commands, named as in llama.cpp.
void AddModelOption(CLI::App& command, std::string& model_path);
void AddEngineOptions(CLI::App& command, EngineOptions& options);
void AddSamplerOptions(CLI::App& command, SamplerOptions& options);

}  // namespace cria::cli
