#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/options.h"
#include "cli/input/left_out.h"
#include "cli/input/prompt_source.h"
#include "cli/models/get_model.h"
#include "cli/report.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/tell.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "llm/completion.h"
#include "llm/session_file.h"
#include "llm/stop_strings.h"
#include "text/detokenizer.h"

namespace cria::cli {
namespace {

struct RunOptions {
  ModelChoice model;
  PromptSource prompt;
  std::string session_path;
  size_t max_tokens = 0;
  WhenFull when_full = WhenFull::kStop;
  int64_t keep_tokens = 4;
  bool ignore_eos = false;
  bool no_display_prompt = false;
  bool json = false;
  bool is_quiet = false;
  EngineOptions engine;
  SamplerOptions sampler;
  ConstraintOptions constraint;
  TextOptions text;
};

size_t KeepTokens(const RunOptions& options) {
  if (options.keep_tokens < 0) return CompletionOptions::kKeepPrompt;
  return static_cast<size_t>(
      std::min<uint64_t>(static_cast<uint64_t>(options.keep_tokens), SIZE_MAX - 1));
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

std::unexpected<Error> NoPrompt() {
  return Fail(ErrorCode::kUsage, "there is no prompt: give it with -p, -f or a pipe");
}

// Returns whether there is no prompt, which is known before the model is loaded.
bool LacksPrompt(const RunOptions& options) {
  return !options.prompt.is_given() && IsTerminal(stdin) && options.session_path.empty();
}

// The text to continue; absent: that of the session file goes on.
Result<std::optional<std::string>> PromptOf(const RunOptions& options, const Engine& engine) {
  CRIA_ASSIGN_OR_RETURN(std::optional<std::string> prompt,
                        ReadPrompt(options.prompt, PromptBound(engine)));
  if (!options.prompt.is_given() && prompt == "") prompt.reset();
  if (!prompt && options.session_path.empty()) return NoPrompt();
  if (options.prompt.text) prompt = options.text.Read(*prompt);
  return prompt;
}

// A model that is loaded, the context to go on from, and what a user sees of it.
class Completion {
 public:
  Completion(const RunOptions& options, Engine& engine, Sampler sampler,
             std::unique_ptr<Constraint> constraint, StopStrings stop_strings)
      : options_(options),
        engine_(engine),
        sampler_(std::move(sampler)),
        constraint_(std::move(constraint)),
        stop_strings_(std::move(stop_strings)),
        session_(engine.NewSession()) {}

  Status Run(std::optional<std::string> prompt, std::chrono::steady_clock::time_point start);

 private:
  Result<StopReason> Generate(const std::string& prompt, std::span<const int32_t> kept,
                              const std::atomic<bool>* cancel, const TextCallback& on_text);
  void Report(StopReason reason, const std::string& prompt, const std::string& text);

  const RunOptions& options_;
  Engine& engine_;
  Sampler sampler_;
  std::unique_ptr<Constraint> constraint_;  // Null: there is none.
  StopStrings stop_strings_;
  std::unique_ptr<Session> session_;
  RunFigures figures_ = {.seed = options_.sampler.seed};
};

// If `kept` is not empty, `prompt` is its text.
Result<StopReason> Completion::Generate(const std::string& prompt, std::span<const int32_t> kept,
                                        const std::atomic<bool>* cancel,
                                        const TextCallback& on_text) {
  CompletionOptions completion = {
      .generation = {.max_tokens = options_.max_tokens,
                     .constraint = constraint_.get(),
                     .cancel = cancel,
                     .stop_strings = options_.text.stop_strings.empty() ? nullptr : &stop_strings_},
      .when_full = options_.when_full,
      .keep_tokens = KeepTokens(options_)};
  if (!options_.ignore_eos) completion.generation.stop_token_ids = engine_.file().stop_token_ids();
  if (!options_.no_display_prompt && !options_.json) {
    completion.on_prompt_read = [&] { std::fwrite(prompt.data(), 1, prompt.size(), stdout); };
  }
  return kept.empty()
             ? Complete(*session_, engine_.tokenizer(), sampler_, prompt, completion, on_text)
             : CompleteTokens(*session_, engine_.tokenizer(), sampler_, kept,
                              /*at_text_start=*/false, completion, on_text);
}

Status Completion::Run(std::optional<std::string> prompt,
                       std::chrono::steady_clock::time_point start) {
  CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> kept,
                        LoadText(options_.session_path, engine_, *session_));
  if (!prompt) {
    prompt = TextOf(engine_.tokenizer(), kept);
  } else {
    kept.clear();
    const std::string notice = LeftOutNotice(engine_.tokenizer(), *prompt);
    if (!notice.empty()) Tell("cria: " + notice);
  }
  figures_.load_ms = MillisecondsSince(start);
  std::string text;
  const InterruptGuard interrupt;
  const Result<StopReason> reason =
      Generate(*prompt, kept, interrupt.flag(), [&](std::string_view piece) {
        if (figures_.first_token_ms == 0.0) figures_.first_token_ms = MillisecondsSince(start);
        if (options_.json) {
          text += piece;
          return;
        }
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        std::fflush(stdout);
      });
  // If reading the prompt was stopped, the part that was read is kept.
  const bool is_stopped = !reason && reason.error().code() == ErrorCode::kCancelled;
  if (!options_.session_path.empty() && (reason || is_stopped)) {
    CRIA_RETURN_IF_ERROR(SaveSession(options_.session_path, SessionContent::kText, {}, *session_,
                                     session_->tokens().size(), engine_));
  }
  CRIA_RETURN_IF_ERROR(reason);
  Report(*reason, *prompt, text);
  if (*reason == StopReason::kCancelled)
    return Fail(ErrorCode::kCancelled, "the answer was stopped");
  return {};
}

void Completion::Report(StopReason reason, const std::string& prompt, const std::string& text) {
  if (options_.json) {
    nlohmann::ordered_json object = {
        {"prompt", prompt}, {"text", text}, {"stop_reason", StopReasonName(reason)}};
    AddStats(object, engine_, *session_, figures_);
    PrintJson(object);
    return;
  }
  std::fputc('\n', stdout);
  std::fflush(stdout);
  if (reason == StopReason::kContextFull) {
    Tell(
        Format("cria: the context of {} tokens is full; ask for a larger one with -c, or drop its "
               "oldest part with --context-full shift",
               session_->context_tokens()));
  }
  if (const std::string notice = UnfinishedNotice(reason, constraint_.get()); !notice.empty()) {
    Tell("cria: " + notice);
  }
  if (options_.is_quiet) return;
  Tell(StatsLine(engine_, *session_, figures_));
}

Status Run(const RunOptions& options) {
  if (LacksPrompt(options)) return NoPrompt();
  CRIA_ASSIGN_OR_RETURN(StopStrings stop_strings, options.text.MakeStopStrings());
  CRIA_ASSIGN_OR_RETURN(const std::string model_path, GetModel(options.model, options.engine));
  const auto start = std::chrono::steady_clock::now();
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        LoadEngine(model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(std::optional<std::string> prompt, PromptOf(options, *engine));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, engine->NewSampler(options.sampler));
  CRIA_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint, options.constraint.Make(*engine));
  if (prompt && !options.is_quiet && !engine->file().chat_template_source().empty()) {
    std::fputs(
        "cria: the model has a chat template, which run does not use: it continues the "
        "prompt as it is; cria chat -p answers it\n",
        stderr);
  }
  return Completion(options, *engine, std::move(sampler), std::move(constraint),
                    std::move(stop_strings))
      .Run(std::move(prompt), start);
}

}  // namespace

void AddRunCommand(CommandLine& program) {
  auto options = std::make_shared<RunOptions>();
  CommandLine& command = program.AddCommand("run", "Continue a prompt");
  AddModelChoice(command, options->model);
  AddPromptOptions(command, options->prompt, "The text to continue",
                   "A file with the text to continue");
  AddTextOptions(command, options->text, "-p");
  AddSessionOption(command, options->session_path, "the text");
  AddPredictOption(command, options->max_tokens, "Maximum number of tokens to generate");
  AddTextFullOption(command, options->when_full);
  command.AddNumber("--keep", options->keep_tokens,
                    "Tokens at the beginning that --context-full shift keeps; -1: the whole prompt",
                    int64_t{-1});
  command.AddFlag("--ignore-eos", options->ignore_eos, "Go on after the model's stop tokens");
  command.AddFlag("--no-display-prompt", options->no_display_prompt, "Print only the continuation");
  command.AddFlag("--json", options->json,
                  "Print the continuation and its figures as a JSON object");
  command.AddFlag("-q,--quiet", options->is_quiet, "Print no figures and no advice");
  AddEngineOptions(command, options->engine);
  AddMaxTempOption(command, options->engine.thermal);
  AddDraftOptions(command, options->engine);
  AddSamplerOptions(command, options->sampler);
  AddConstraintOptions(command, options->constraint);
  command.SetAction([options] {
    options->engine.max_constraints = options->constraint.is_given() ? 1 : 0;
    return Run(*options);
  });
}

}  // namespace cria::cli
