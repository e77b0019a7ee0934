#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "llm/engine.h"
#include "llm/sampler.h"

namespace cria::cli {

// Exit codes of both programs.
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Flags that mean the same in several commands, named as in llama.cpp.
void AddModelOption(CLI::App& command, std::string& model_path);
void AddEngineOptions(CLI::App& command, EngineOptions& options);
void AddSamplerOptions(CLI::App& command, SamplerOptions& options);

// The exit code for an error, which it prints as "program: error: sentence".
int ReportError(const char* program, const Error& error);

// What `--version` prints.
std::string VersionText(const char* program);

}  // namespace cria::cli
