#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/batch/answer_file.h"
#include "cli/batch/batch_line.h"
#include "cli/chat/answer_printer.h"
#include "cli/commands/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/options.h"
#include "cli/input/text_file.h"
#include "cli/models/get_model.h"
#include "cli/remedy.h"
#include "cli/report.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "llm/completion.h"
#include "llm/conversation.h"
#include "llm/stop_strings.h"
#include "messages/json_text.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kBatchSequences = 4;

struct BatchOptions {
  ModelChoice model;
  std::string prompts_path;
  std::string answers_path;
  size_t max_tokens = 0;
  bool is_quiet = false;
  EngineOptions engine;
  SamplerOptions sampler;
};

// The lines that have something.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") != line.npos) lines.push_back(line);
  }
  return lines;
}

// One of the threads that answer, with a session of its own.
class Answerer {
 public:
  Answerer(Engine& engine, const BatchLine& defaults, const std::atomic<bool>* cancel)
      : engine_(engine), defaults_(defaults), cancel_(cancel), session_(engine.NewSession()) {}

  // The answer as an object, also if there is an error; kCancelled is the only failure.
  Result<Json> Answer(size_t index, std::string_view text) {
    Json json;
    json["index"] = index;
    const Status answered = TryAnswer(text, json);
    if (answered) return json;
    if (answered.error().code() == ErrorCode::kCancelled) return std::unexpected(answered.error());
    json["error"] = Sentence(answered.error());
    return json;
  }
  size_t num_tokens() const { return num_tokens_; }

 private:
  Status TryAnswer(std::string_view text, Json& json) {
    CRIA_ASSIGN_OR_RETURN(BatchLine line, ReadBatchLine(text, defaults_, engine_.chat_template()));
    if (!line.id.is_null()) json["id"] = line.id;
    CRIA_ASSIGN_OR_RETURN(Sampler sampler, engine_.NewSampler(line.sampler));
    CRIA_ASSIGN_OR_RETURN(StopStrings stop, StopStrings::Create(line.stop));
    GenerationOptions generation = {.max_tokens = line.max_tokens,
                                    .stop_token_ids = engine_.file().stop_token_ids(),
                                    .cancel = cancel_,
                                    .stop_strings = line.stop.empty() ? nullptr : &stop};
    if (line.any_json || !line.schema.empty()) {
      CRIA_ASSIGN_OR_RETURN(generation.constraint, ConstraintFor(line));
    }
    session_->ResetStats();
    Result<StopReason> reason = line.prompt ? Continue(*line.prompt, generation, sampler, json)
                                            : AnswerMessages(line, generation, sampler, json);
    num_tokens_ += session_->stats().generated_tokens;
    CRIA_RETURN_IF_ERROR(reason);
    if (*reason == StopReason::kCancelled) return Fail(ErrorCode::kCancelled, "stopped");
    const SessionStats& stats = session_->stats();
    json["stop_reason"] = StopReasonName(*reason);
    json["prompt_tokens"] = stats.prompt_tokens + stats.reused_tokens;
    json["completion_tokens"] = stats.generated_tokens;
    return {};
  }

  Result<Constraint*> ConstraintFor(const BatchLine& line) {
    if (constraint_ == nullptr) {
      CRIA_ASSIGN_OR_RETURN(constraint_, engine_.NewConstraint());
    }
    const auto kind =
        line.schema.empty() ? grammar::ConstraintKind::kJson : grammar::ConstraintKind::kJsonSchema;
    const Status set = constraint_->Set({kind, line.schema});
    if (!set) {
      return Fail(set.error().code(), "json_schema: " + set.error().message(),
                  set.error().remedy());
    }
    return constraint_.get();
  }

  Result<StopReason> Continue(const std::string& prompt, const GenerationOptions& generation,
                              Sampler& sampler, Json& json) {
    std::string text;
    const Result<StopReason> reason =
        Complete(*session_, engine_.tokenizer(), sampler, prompt, {.generation = generation},
                 [&](std::string_view piece) { text += piece; });
    json["text"] = text;
    return reason;
  }

  Result<StopReason> AnswerMessages(const BatchLine& line, const GenerationOptions& generation,
                                    Sampler& sampler, Json& json) {
    const bool is_constrained = generation.constraint != nullptr;
    const bool is_reasoning =
        !is_constrained && OpensReasoning(engine_.chat_template(), line.messages, "");
    // In this format, nothing is printed.
    const AnswerStyle style = {.format = AnswerFormat::kJson};
    AnswerPrinter parts(style, FindReasoningTags(engine_.chat_template()), is_reasoning, [] {});
    Conversation conversation(*session_, engine_.tokenizer(), engine_.chat_template(),
                              line.messages);
    const Result<StopReason> reason = conversation.Answer(
        generation, sampler, [&](std::string_view piece) { parts.Append(piece); });
    parts.Finish(reason.has_value());
    json["content"] = parts.answer();
    if (!parts.reasoning().empty()) json["reasoning_content"] = parts.reasoning();
    return reason;
  }

  Engine& engine_;
  const BatchLine& defaults_;
  const std::atomic<bool>* cancel_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Constraint> constraint_;  // Made when a line first needs one.
  size_t num_tokens_ = 0;
};

// All lines, and the threads that answer them.
class Batch {
 public:
  Batch(Engine& engine, const BatchLine& defaults, std::vector<std::string_view> lines,
        AnswerFile& answers)
      : engine_(engine),
        defaults_(defaults),
        lines_(std::move(lines)),
        answers_(answers),
        next_(answers.num_written()),
        num_done_(answers.num_written()) {}

  Status Run(size_t num_threads) {
    std::vector<std::thread> threads;
    threads.reserve(num_threads);
    for (size_t i = 0; i < num_threads; ++i) threads.emplace_back([this] { AnswerLines(); });
    for (std::thread& thread : threads) thread.join();
    bar_.Clear();
    if (!status_) return status_;
    if (interrupt_.interrupted()) {
      return Fail(ErrorCode::kCancelled, "the batch was stopped; the same command goes on");
    }
    return {};
  }
  size_t num_errors() const { return num_errors_; }
  size_t num_tokens() const { return num_tokens_; }

 private:
  void AnswerLines() {
    Answerer answerer(engine_, defaults_, interrupt_.flag());
    while (const std::optional<size_t> index = TakeLine()) {
      const Result<Json> answer = answerer.Answer(*index, lines_[*index]);
      const std::scoped_lock lock(mutex_);
      if (answer && status_) {
        num_errors_ += answer->contains("error");
        ++num_done_;
        bar_.Update(num_done_, lines_.size(), Format("{} of {}", num_done_, lines_.size()));
        status_ = answers_.Add(*index, WriteJson(*answer));
      }
      // After an answer that was stopped or could not be written, no thread takes another line.
      if (!answer || !status_) next_ = lines_.size();
      written_.notify_all();
    }
    const std::scoped_lock lock(mutex_);
    num_tokens_ += answerer.num_tokens();
  }

  // The next line; nothing if there is none or the batch was stopped. Waits while many answers are
  // kept until an earlier one is there.
  std::optional<size_t> TakeLine() {
    constexpr size_t kMaxAhead = 64;
    std::unique_lock lock(mutex_);
    written_.wait(
        lock, [&] { return next_ >= lines_.size() || next_ < answers_.num_written() + kMaxAhead; });
    if (next_ >= lines_.size() || interrupt_.interrupted()) return std::nullopt;
    return next_++;
  }

  Engine& engine_;
  const BatchLine& defaults_;
  const std::vector<std::string_view> lines_;
  AnswerFile& answers_;
  const InterruptGuard interrupt_;
  std::mutex mutex_;  // Protects everything below, and the answers.
  std::condition_variable written_;
  size_t next_;
  size_t num_done_;
  size_t num_errors_ = 0;
  size_t num_tokens_ = 0;
  Status status_;
  ProgressBar bar_{"batch", std::chrono::seconds(1)};
};

Status RunBatch(BatchOptions options) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.prompts_path, LongText()));
  CRIA_ASSIGN_OR_RETURN(AnswerFile answers, AnswerFile::Open(options.answers_path));
  std::vector<std::string_view> lines = LinesOf(text);
  const size_t num_lines = lines.size();
  const size_t num_there = answers.num_written();
  if (num_there > num_lines) {
    return Fail(ErrorCode::kUsage, Format("{}: has {} answers, but there are {} prompts; choose "
                                          "another file",
                                          options.answers_path, num_there, num_lines));
  }
  if (num_there != 0 && !options.is_quiet) {
    std::fprintf(stderr, "cria: %zu of %zu answers are there already\n", num_there, num_lines);
  }
  if (num_there == num_lines) return {};
  const size_t num_threads = options.engine.num_sequences;
  options.engine.other_threads = num_threads;
  options.engine.num_texts = num_threads;
  options.engine.other_memory.push_back(MemoryLine::Other(
      "batch: prompts", MemoryKind::kPrivate, text.size() + num_lines * sizeof(std::string_view)));
  const bool may_constrain = text.contains("json_schema") || text.contains("response_format");
  options.engine.max_constraints = may_constrain ? num_threads : 0;
  CRIA_ASSIGN_OR_RETURN(const std::string path, GetModel(options.model, options.engine));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, LoadEngine(path, options.engine));
  const BatchLine defaults = {.max_tokens = options.max_tokens, .sampler = options.sampler};
  const auto start = std::chrono::steady_clock::now();
  Batch batch(*engine, defaults, std::move(lines), answers);
  CRIA_RETURN_IF_ERROR(batch.Run(num_threads));
  if (!options.is_quiet) {
    const double seconds = MillisecondsSince(start) / 1000.0;
    std::fprintf(stderr, "%zu answers, %zu of them errors | %zu tokens in %.1f s, %.1f tok/s\n",
                 num_lines - num_there, batch.num_errors(), batch.num_tokens(), seconds,
                 static_cast<double>(batch.num_tokens()) / seconds);
  }
  return {};
}

}  // namespace

void AddBatchCommand(CommandLine& program) {
  auto options = std::make_shared<BatchOptions>();
  options->engine.num_sequences = kBatchSequences;
  CommandLine& command =
      program.AddCommand("batch", "Answer a file of prompts, several at the same time");
  AddModelChoice(command, options->model);
  command
      .AddText("-f,--file", options->prompts_path,
               "The prompts: in each line a JSON object with prompt or messages, and options with "
               "the names of requests to the server; -: standard input")
      .Required()
      .Metavar("FILE");
  command
      .AddText("-o,--output", options->answers_path,
               "The answers, in the same order; goes on with what is there")
      .Required()
      .Metavar("FILE");
  AddPredictOption(command, options->max_tokens, "Maximum number of tokens of an answer");
  command.AddFlag("-q,--quiet", options->is_quiet, "Print no figures");
  AddEngineOptions(command, options->engine);
  AddMaxTempOption(command, options->engine.thermal);
  AddDraftOptions(command, options->engine);
  AddSamplerOptions(command, options->sampler);
  command.SetAction([options] { return RunBatch(*options); });
}

}  // namespace cria::cli
