#include "cli/options.h"

#include <cstdint>
#include <map>

namespace cria::cli {
namespace {

constexpr const char* kMemoryGroup = "Memory and threads";

}  // namespace

void AddModelOption(CLI::App& command, std::string& model_path) {
  command.add_option("-m,--model", model_path, "The model file (.cria)")
      ->required()
      ->type_name("FILE");
}

void AddContextOptions(CLI::App& command, EngineOptions& options) {
  const char* group = kMemoryGroup;
  command
      .add_option("-c,--ctx-size", options.context_tokens,
                  "Tokens that the KV cache holds; 0: 2048, or the model's length if shorter")
      ->capture_default_str()
      ->group(group);
  const std::map<std::string, KvType> types = {
      {"f32", KvType::kF32}, {"f16", KvType::kF16}, {"int8", KvType::kInt8}};
  command
      .add_option("--kv", options.kv_type, "How keys and values are stored: f32, f16 or int8 [f32]")
      ->transform(CLI::CheckedTransformer(types).description(""))
      ->group(group);
  command
      .add_option("-b,--batch-size", options.chunk_tokens,
                  "Prompt tokens that go through the model at once")
      ->capture_default_str()
      ->group(group);
  command.add_option("-t,--threads", options.num_threads, "Threads; 0: one for each fast core")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--threads-batch", options.num_batch_threads,
                  "Threads for a prompt's tokens, many at once; 0: as many as -t; also -tb")
      ->capture_default_str()
      ->group(group);
  xnn::PackingOptions& packing = options.packing;
  AddPackCacheOption(command, packing.cache_folder)->group(group);
  command
      .add_flag_callback(
          "--no-pack-cache", [&packing] { packing.cache_folder.clear(); },
          "Pack into memory at every start, and keep nothing on disk")
      ->group(group);
}

void AddEngineOptions(CLI::App& command, EngineOptions& options) {
  AddContextOptions(command, options);
  const char* group = kMemoryGroup;
  command
      .add_option("--packed", options.packing.packed_path,
                  "Use these packed weights, which cria pack -o made, instead of the cache")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option_function<std::uint64_t>(
          "--memory-limit",
          [&options](const std::uint64_t& bytes) { options.memory_limit_bytes = bytes; },
          "Refuse to load a model that will take more resident memory, such as 700M (of 1,048,576 "
          "bytes)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false).description(""))
      ->type_name("BYTES")
      ->group(group);
  command
      .add_flag("--force", options.ignore_memory_limits,
                "Load a model that does not fit the limits of memory all the same")
      ->group(group);
}

void AddPlanOptions(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--board", arguments.board,
                     "Tell whether this board has the memory: pi-zero-2w, pi-3, pi-4-2gb, …");
  command.add_flag("--json", arguments.json, "Print JSON");
}

CLI::Option* AddPackCacheOption(CLI::App& command, std::string& folder) {
  if (const std::string cache = platform::CacheFolder(); !cache.empty()) folder = cache + "/packed";
  return command
      .add_option("--pack-cache", folder, "Where packed weights are kept; also CRIA_PACK_CACHE")
      ->envname("CRIA_PACK_CACHE")
      ->capture_default_str()
      ->type_name("FOLDER");
}

void AddContextFullOption(CLI::App& command, WhenFull& when_full, const std::string& shift) {
  const std::map<std::string, WhenFull> policies = {{"stop", WhenFull::kStop},
                                                    {"shift", WhenFull::kShift}};
  command
      .add_option("--context-full", when_full,
                  "When the context is full: stop, or shift: " + shift + " and go on [stop]")
      ->transform(CLI::CheckedTransformer(policies).description(""));
}

void AddSamplerOptions(CLI::App& command, SamplerOptions& options) {
  const char* group = "Sampling";
  const auto add = [&](const char* flags, auto& value, const char* help) {
    command.add_option(flags, value, help)->capture_default_str()->group(group);
  };
  add("--temp", options.temperature, "Temperature; 0 always takes the most likely token");
  add("--top-k", options.top_k, "Choose among the k most likely tokens; 0: all");
  add("--top-p", options.top_p, "Choose among the most likely that together reach p; 1: all");
  add("--min-p", options.min_p, "Drop tokens less than p times as likely as the best; 0: none");
  add("--repeat-penalty", options.repeat_penalty, "Make recent tokens less likely; 1: do not");
  add("--repeat-last-n", options.repeat_last_n, "How many tokens count as recent");
  add("-s,--seed", options.seed, "Seed of the random choice; the same seed gives the same text");
}

}  // namespace cria::cli
