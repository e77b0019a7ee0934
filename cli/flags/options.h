#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "cli/memory_report.h"
#include "llm/conversation.h"
#include "llm/engine.h"
#include "llm/sampler.h"

namespace cria::cli {

// Flags that mean the same in several commands, named as in llama.cpp.
void AddModelOption(CommandLine& command, std::string& model_path);
// What decides a model's memory: context, KV type, chunk, threads, and where packed weights are.
void AddContextOptions(CommandLine& command, EngineOptions& options);
// Those, packed weights of the user's own, and the limits of memory.
void AddEngineOptions(CommandLine& command, EngineOptions& options);
void AddPlanOptions(CommandLine& command, PlanArguments& arguments);
// The folder of packed weights, which is a default place of the system's unless it is given.
Option& AddPackCacheOption(CommandLine& command, std::string& folder);
// `shift` says what a shift does, after "shift: ".
void AddContextFullOption(CommandLine& command, WhenFull& when_full, const std::string& shift);
void AddSamplerOptions(CommandLine& command, SamplerOptions& options);

}  // namespace cria::cli
