#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "llm/conversation.h"

namespace cria::cli {
namespace {

struct RunOptions {
  std::string model_path;
  std::string prompt;
  std::string prompt_path;
  size_t max_tokens = 0;
  bool ignore_eos = false;
  bool no_display_prompt = false;
  EngineOptions engine;
  SamplerOptions sampler;
};

Status Run(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::string prompt = options.prompt;
  if (!options.prompt_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(prompt, ReadTextFile(options.prompt_path));
  }
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        Engine::Load(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler,
                        Sampler::Create(options.sampler, engine->decoder().vocab_size()));
  const double load_ms = MillisecondsSince(start);

  const InterruptGuard interrupt;
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        engine->tokenizer().Encode(prompt, {.parse_special = true}));
  CRIA_RETURN_IF_ERROR(engine->session().Prefill(tokens, interrupt.flag()));
  if (!options.no_display_prompt) std::fputs(prompt.c_str(), stdout);

  double first_token_ms = 0.0;
  Detokenizer detokenizer(engine->tokenizer(), {.at_text_start = prompt.empty()});
  GenerationOptions generation = {.max_tokens = options.max_tokens, .cancel = interrupt.flag()};
  if (!options.ignore_eos) generation.stop_token_ids = engine->file().stop_token_ids();
  const Result<StopReason> reason =
      GenerateText(engine->session(), detokenizer, sampler, generation, [&](std::string_view text) {
        if (first_token_ms == 0.0) first_token_ms = MillisecondsSince(start);
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
  CRIA_RETURN_IF_ERROR(reason);
  std::fputc('\n', stdout);
  if (*reason == StopReason::kContextFull) {
    std::fputs("cria: the context is full; ask for a larger one with -c\n", stderr);
  } else if (*reason == StopReason::kCancelled) {
    std::fputs("cria: stopped\n", stderr);
  }
  std::fprintf(stderr, "%s\n", StatsLine(*engine, load_ms, first_token_ms).c_str());
  return {};
}

}  // namespace

void AddRunCommand(CLI::App& app, Status& result) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Continue a prompt");
  AddModelOption(*command, options->model_path);
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "The text to continue");
  command->add_option("-f,--file", options->prompt_path, "A file with the text to continue")
      ->excludes(prompt)
      ->type_name("FILE");
  command
      ->add_option("-n,--predict", options->max_tokens,
                   "The most tokens to generate; 0: until the model stops")
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on past the model's stop tokens");
  command->add_flag("--no-display-prompt", options->no_display_prompt,
                    "Print the continuation alone");
  AddEngineOptions(*command, options->engine);
  AddSamplerOptions(*command, options->sampler);
  command->callback([options, &result] { result = Run(*options); });
}

}  // namespace cria::cli
