#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/options.h"
#include "cli/printable.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "core/format.h"
#include "llm/completion.h"
#include "llm/session_file.h"
#include "text/detokenizer.h"

namespace cria::cli {
namespace {

struct RunOptions {
  std::string model_path;
  std::string prompt;
  std::string prompt_path;
  std::string session_path;
  size_t max_tokens = 0;
  WhenFull when_full = WhenFull::kStop;
  int64_t keep_tokens = 4;
  bool ignore_eos = false;
  bool no_display_prompt = false;
  EngineOptions engine;
  SamplerOptions sampler;
  TextOptions text;
};

size_t KeepTokens(const RunOptions& options) {
  if (options.keep_tokens < 0) return CompletionOptions::kKeepPrompt;
  return static_cast<size_t>(
      std::min<uint64_t>(static_cast<uint64_t>(options.keep_tokens), SIZE_MAX - 1));
}

// The notice for a text that ends for another reason than the model's own stop token.
std::string EndNotice(StopReason reason, size_t context_tokens) {
  if (reason == StopReason::kContextFull) {
    return Format(
        "cria: the context of {} tokens is full; ask for a larger one with -c, or "
        "drop its oldest part with --context-full shift\n",
        context_tokens);
  }
  return reason == StopReason::kCancelled ? "cria: stopped\n" : "";
}

// The tokens of the text in the file of --session; none if there is no such file.
Result<std::vector<int32_t>> LoadText(const std::string& path, Engine& engine, Session& session) {
  if (path.empty()) return {};
  Result<LoadedSession> loaded = LoadSession(path, SessionContent::kText, engine, session);
  if (!loaded && loaded.error().code() == ErrorCode::kNotFound) return {};
  CRIA_RETURN_IF_ERROR(loaded);
  if (!loaded->why_read_again.empty()) {
    std::fprintf(stderr, "cria: %s: its text is read again, because %s\n", Printable(path).c_str(),
                 loaded->why_read_again.c_str());
  }
  return std::move(loaded->tokens);
}

std::string TextOf(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Append(token);
  text += detokenizer.Flush();
  return text;
}

Status Run(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::string prompt = options.text.Read(options.prompt);
  CRIA_ASSIGN_OR_RETURN(StopStrings stop_strings, options.text.MakeStopStrings());
  if (!options.prompt_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(prompt, ReadTextFile(options.prompt_path));
  }
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        LoadEngine(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler,
                        Sampler::Create(options.sampler, engine->decoder().vocab_size()));
  Session session(engine->scheduler());
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> kept,
                        LoadText(options.session_path, *engine, session));
  const bool goes_on = prompt.empty() && !kept.empty();
  if (goes_on) prompt = TextOf(engine->tokenizer(), kept);
  const double load_ms = MillisecondsSince(start);

  const InterruptGuard interrupt;
  CompletionOptions completion = {.generation = {.max_tokens = options.max_tokens,
                                                 .cancel = interrupt.flag(),
                                                 .stop_strings = &stop_strings},
                                  .when_full = options.when_full,
                                  .keep_tokens = KeepTokens(options)};
  if (!options.ignore_eos) completion.generation.stop_token_ids = engine->file().stop_token_ids();
  if (!options.no_display_prompt) {
    completion.on_prompt_read = [&] { std::fputs(prompt.c_str(), stdout); };
  }
  double first_token_ms = 0.0;
  const TextCallback print = [&](std::string_view text) {
    if (first_token_ms == 0.0) first_token_ms = MillisecondsSince(start);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  const Result<StopReason> reason =
      goes_on ? CompleteTokens(session, engine->tokenizer(), sampler, kept,
                               /*at_text_start=*/false, completion, print)
              : Complete(session, engine->tokenizer(), sampler, prompt, completion, print);
  // Of a prompt that was stopped, the part that was read is kept.
  const bool is_stopped = !reason && reason.error().code() == ErrorCode::kCancelled;
  if (!options.session_path.empty() && (reason || is_stopped)) {
    CRIA_RETURN_IF_ERROR(SaveSession(options.session_path, SessionContent::kText, {}, session,
                                     session.tokens().size(), *engine));
  }
  CRIA_RETURN_IF_ERROR(reason);
  std::fputc('\n', stdout);
  std::fputs(EndNotice(*reason, engine->decoder().context_tokens()).c_str(), stderr);
  std::fprintf(stderr, "%s | seed %" PRIu64 "\n",
               StatsLine(*engine, session, load_ms, first_token_ms).c_str(), options.sampler.seed);
  return {};
}

}  // namespace

void AddRunCommand(CommandLine& program) {
  auto options = std::make_shared<RunOptions>();
  CommandLine& command = program.AddCommand("run", "Continue a prompt");
  AddModelOption(command, options->model_path);
  Option& prompt = command.AddText("-p,--prompt", options->prompt, "The text to continue");
  command.AddText("-f,--file", options->prompt_path, "A file with the text to continue")
      .Excludes(prompt)
      .Metavar("FILE");
  AddSessionOption(command, options->session_path, "the text");
  AddPredictOption(command, options->max_tokens, "Maximum number of tokens to generate");
  AddContextFullOption(command, options->when_full, "drop half of it");
  command.AddNumber("--keep", options->keep_tokens,
                    "Tokens at the beginning that --context-full shift keeps; -1: the whole prompt",
                    int64_t{-1});
  command.AddFlag("--ignore-eos", options->ignore_eos, "Go on after the model's stop tokens");
  command.AddFlag("--no-display-prompt", options->no_display_prompt, "Print only the continuation");
  AddTextOptions(command, options->text, "-p");
  AddEngineOptions(command, options->engine);
  AddSamplerOptions(command, options->sampler);
  command.SetAction([options] { return Run(*options); });
}

}  // namespace cria::cli
