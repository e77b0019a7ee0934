#include "cli/flags/options.h"

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/flags/byte_count.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr const char* kMemoryGroup = "Memory and threads";

Status ReadBytes(std::string_view text, std::optional<std::uint64_t>& bytes) {
  bytes = ParseByteCount(text);
  if (bytes) return {};
  return WrongValue(text, "a number of bytes such as 700M or 700MiB");
}

Status ReadWholeNumber(std::string_view text, const std::function<void(size_t number)>& use) {
  size_t number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end) return WrongValue(text, "a whole number");
  use(number);
  return {};
}

}  // namespace

void AddModelOption(CommandLine& command, std::string& model_path) {
  command
      .AddText("-m,--model", model_path, "The model file (.cria); also without -m, or CRIA_MODEL")
      .Environment("CRIA_MODEL")
      .Required()
      .Positional()
      .Metavar("FILE");
}

void AddModelNameOption(CommandLine& command, std::string& name) {
  AddModelOption(command, name);
  command.option("--model").Help(kModelNameHelp).Metavar("MODEL");
}

void AddModelChoice(CommandLine& command, ModelChoice& choice) {
  AddModelNameOption(command, choice.name);
  AddAgreement(command, choice.agrees);
}

void AddAgreement(CommandLine& command, bool& agrees) {
  command.AddFlag("-y,--yes", agrees, "Download and convert without asking");
}

void AddContextOptions(CommandLine& command, EngineOptions& options,
                       std::optional<KvType> kv_type) {
  options.kv_type = kv_type;
  const char* group = kMemoryGroup;
  command
      .Add(
          "-c,--ctx-size", "UINT",
          [&options](std::string_view text) {
            return ReadWholeNumber(text, [&](size_t number) {
              options.context_tokens = number == 0 ? kModelsOwnContext : number;
            });
          },
          "Tokens that the KV cache holds; 0: as many as the model was made for (default: 2048, or "
          "that number if it is less)")
      .Group(group);
  command
      .AddNumber("-np,--parallel", options.num_sequences,
                 "Sequences that run at the same time and share the KV cache")
      .Group(group);
  command
      .Add(
          "--ctx-checkpoints", "UINT",
          [&options](std::string_view text) {
            return ReadWholeNumber(text, [&](size_t number) { options.num_checkpoints = number; });
          },
          "Earlier lengths that sequences can come back to, of a model with windows or recurrent "
          "layers (default: 2, and 2 for each sequence)")
      .Group(group);
  command
      .AddChoice("--kv", options.kv_type,
                 {{"f32", KvType::kF32}, {"f16", KvType::kF16}, {"int8", KvType::kInt8}},
                 kv_type ? Format("How keys and values are stored: f32, f16 or int8 [{}]",
                                  KvTypeName(*kv_type))
                         : "How keys and values are stored: f32, f16 or int8 (default: int8, or "
                           "f16 if the model file says so)")
      .Group(group);
  command
      .AddNumber("-b,--batch-size", options.chunk_tokens,
                 "Prompt tokens that go through the model at once")
      .Group(group);
  command.AddNumber("-t,--threads", options.num_threads, "Threads; 0: one for each fast core")
      .Group(group);
  command
      .AddNumber("-tb,--threads-batch", options.num_batch_threads,
                 "Threads for reading prompts; 0: as many as -t")
      .Group(group);
  xnn::PackingOptions& packing = options.packing;
  AddPackCacheOption(command, packing.cache_folder).Group(group);
  // Added after --pack-cache: the later setter wins.
  command
      .AddFlag(
          "--no-pack-cache", [&packing] { packing.cache_folder.clear(); },
          "Pack into memory at every start and keep nothing on disk")
      .Group(group);
}

void AddKeptPrompts(CommandLine& command, EngineOptions& options) {
  command
      .Add(
          "--kept-prompts", "UINT",
          [&options](std::string_view text) {
            return ReadWholeNumber(text,
                                   [&](size_t number) { options.num_kept_sequences = number; });
          },
          "Texts of earlier requests that stay in the KV cache beside those of -np, while it has "
          "room (default: " +
              std::to_string(kServerKeptPrompts) +
              ", but 0 for models with windows or recurrent layers, where each takes memory)")
      .Group(kServerGroup);
}

void AddEngineOptions(CommandLine& command, EngineOptions& options, std::optional<KvType> kv_type) {
  AddContextOptions(command, options, kv_type);
  const char* group = kMemoryGroup;
  command
      .AddText("--packed", options.packing.packed_path,
               "Use these packed weights, which cria pack -o made, instead of the cache")
      .Metavar("FILE")
      .Group(group);
  command
      .Add(
          "--memory-limit", "BYTES",
          [&options](std::string_view text) { return ReadBytes(text, options.memory_limit_bytes); },
          "Refuse to load a model that will take more resident memory, such as 700M "
          "or 700MiB (M is 1,000,000, Mi is 1,048,576)")
      .Group(group);
  command
      .AddFlag("--force", options.ignore_memory_limits,
               "Load a model even if it does not fit the memory limits")
      .Group(group);
}

void AddMaxTempOption(CommandLine& command, ThermalOptions& options) {
  command
      .Add(
          "--max-temp", "CELSIUS",
          [&options](std::string_view text) -> Status {
            const char* const begin = text.data();
            const char* const end = begin + text.size();
            const auto [stop, error] = std::from_chars(begin, end, options.max_celsius);
            if (error == std::errc() && stop == end && options.Validate()) return {};
            return WrongValue(text,
                              Format("a temperature from {} to {} °C, or 0 for no limit",
                                     ThermalOptions::kMinCelsius, ThermalOptions::kMaxCelsius));
          },
          "Compute more slowly, with fewer threads and with pauses between tokens, if the "
          "processor comes near this temperature, before the board slows it down (default: no "
          "limit)")
      .Group(kMemoryGroup);
}

void AddPlanOptions(CommandLine& command, PlanArguments& arguments) {
  command.AddText("--board", arguments.board,
                  "Print whether this board has the memory: pi-zero-2w, pi-3, pi-4-2gb, …");
  command.Add(
      "--memory-limit", "BYTES",
      [&arguments](std::string_view text) { return ReadBytes(text, arguments.memory_limit_bytes); },
      "Fail if the model will take more resident memory, such as 700M or 700MiB");
  command.AddFlag("--json", arguments.json, "Print JSON");
  command
      .AddText("--plot", arguments.plot_path,
               "Draw the memory by parts over the context into this file, as SVG")
      .Metavar("FILE");
}

Option& AddPackCacheOption(CommandLine& command, std::string& folder) {
  folder = xnn::PackCache::UserFolder();
  return command.AddText("--pack-cache", folder, "Folder for packed weights; also CRIA_PACK_CACHE")
      .Environment("CRIA_PACK_CACHE")
      .Default(folder)
      .Metavar("FOLDER");
}

void AddDraftOptions(CommandLine& command, EngineOptions& options) {
  const char* group = "Drafts";
  DraftOptions& drafts = options.drafts;
  command
      .AddNumber("--draft-ngram", drafts.ngram_tokens,
                 "Guess that the last so many tokens are followed by what followed them earlier in "
                 "the text; 0: off")
      .Group(group);
  command
      .AddFlag("--draft-mtp", drafts.has_mtp,
               "Guess with the model's own layer for multi-token prediction, where --draft-ngram "
               "finds nothing; only if the model has one")
      .Group(group);
  command
      .AddText("-md,--model-draft", options.draft_model_path,
               "A much smaller model with the same vocabulary (.cria), which guesses where "
               "--draft-ngram finds nothing")
      .Metavar("FILE")
      .Group(group);
  command
      .AddNumber("--draft-max", drafts.max_tokens,
                 "Maximum number of tokens that are guessed at once")
      .Group(group);
  command
      .AddNumber("--draft-min", drafts.min_tokens,
                 "Guess at least so many tokens, whether that is expected to pay or not; 0: only "
                 "as many as pay")
      .Group(group);
  command
      .AddNumber("--draft-p-min", drafts.min_probability,
                 "End a guess of --draft-mtp or --model-draft before a token that it gives a "
                 "smaller probability; "
                 "0: never")
      .Group(group);
}

const char* WhenFullName(WhenFull when_full) {
  switch (when_full) {
    case WhenFull::kStop:
      return "stop";
    case WhenFull::kShift:
      return "shift";
    case WhenFull::kForget:
      break;
  }
  return "forget";
}

void AddTextFullOption(CommandLine& command, WhenFull& when_full) {
  command
      .AddChoice("--context-full", when_full,
                 {{"stop", WhenFull::kStop}, {"shift", WhenFull::kShift}},
                 "When the context is full: stop, or shift: drop half of it and go on")
      .Default(WhenFullName(when_full));
}

Option& AddConversationFullOption(CommandLine& command, std::optional<WhenFull>& when_full) {
  using Choice = std::optional<WhenFull>;
  return command.AddChoice("--context-full", when_full,
                           {{"stop", Choice(WhenFull::kStop)},
                            {"forget", Choice(WhenFull::kForget)},
                            {"shift", Choice(WhenFull::kShift)}},
                           "When the context is full: stop; forget: forget the oldest turns, and "
                           "end an answer that fills the context by itself; or shift: the same, "
                           "but go on with the end of such an answer");
}

void AddSessionOption(CommandLine& command, std::string& path, const std::string& content) {
  command
      .AddText("--session", path,
               "Keep " + content + " and its KV cache in this file, and go on from it if it exists")
      .Metavar("FILE");
}

}  // namespace cria::cli
