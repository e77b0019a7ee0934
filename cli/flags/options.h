#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "cli/models/model_choice.h"
#include "cli/plan/memory_report.h"
#include "llm/conversation.h"
#include "llm/engine.h"

namespace cria::cli {

inline constexpr const char* kModelNameHelp =
    "A model file (.cria), a GGUF file, a checkpoint's folder, hf:ORG/NAME[:FILE.gguf] or a short "
    "name (cria models --known); also without -m, or CRIA_MODEL";

// Options that several commands have with the same meaning, with llama.cpp's names.
void AddModelOption(CommandLine& command, std::string& model_path);
// Adds the option of a model for a command that also takes checkpoints and names; FindNamedModel
// tells what is meant.
void AddModelNameOption(CommandLine& command, std::string& name);
// Adds this option and -y; GetModel gives the file.
void AddModelChoice(CommandLine& command, ModelChoice& choice);
// -y: `agrees` is that of a ModelChoice.
void AddAgreement(CommandLine& command, bool& agrees);
// Options that decide a model's memory: context, KV type, chunk, threads, and the folder of packed
// weights. `kv_type` becomes the default, or if there is none, DefaultKvType of the model; commands
// that measure what a model loses take kF32.
void AddContextOptions(CommandLine& command, EngineOptions& options,
                       std::optional<KvType> kv_type = std::nullopt);
// These options, a file of packed weights, and the memory limits.
void AddEngineOptions(CommandLine& command, EngineOptions& options,
                      std::optional<KvType> kv_type = std::nullopt);
// --max-temp, for commands that generate.
void AddMaxTempOption(CommandLine& command, ThermalOptions& options);
// The heading of a server's options.
inline constexpr const char* kServerGroup = "Server";
// The default of --kept-prompts, for models whose sequences have no memory of their own.
inline constexpr size_t kServerKeptPrompts = 28;
// --kept-prompts of a server.
void AddKeptPrompts(CommandLine& command, EngineOptions& options);
void AddPlanOptions(CommandLine& command, PlanArguments& arguments);
// The folder of packed weights; its default is a folder of the system for caches.
Option& AddPackCacheOption(CommandLine& command, std::string& folder);
// Guesses that make generating faster and change no text.
void AddDraftOptions(CommandLine& command, EngineOptions& options);
// --context-full of a text that is continued, and of a conversation.
void AddTextFullOption(CommandLine& command, WhenFull& when_full);
Option& AddConversationFullOption(CommandLine& command, std::optional<WhenFull>& when_full);
// The value of --context-full.
const char* WhenFullName(WhenFull when_full);
// Where `content` is kept.
void AddSessionOption(CommandLine& command, std::string& path, const std::string& content);

}  // namespace cria::cli
