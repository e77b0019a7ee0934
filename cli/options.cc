#include "cli/options.h"

#include <map>

namespace cria::cli {

void AddModelOption(CLI::App& command, std::string& model_path) {
  command.add_option("-m,--model", model_path, "The model file (.cria)")
      ->required()
      ->type_name("FILE");
}

void AddEngineOptions(CLI::App& command, EngineOptions& options) {
  const char* group = "Memory and threads";
  command
      .add_option("-c,--ctx-size", options.context_tokens,
                  "Tokens that the KV cache holds; 0: 2048, or the model's length if shorter")
      ->capture_default_str()
      ->group(group);
  const std::map<std::string, KvType> types = {{"f32", KvType::kF32}, {"int8", KvType::kInt8}};
  command.add_option("--kv", options.kv_type, "How keys and values are stored: f32 or int8 [f32]")
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
