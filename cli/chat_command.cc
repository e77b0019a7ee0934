#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/options.h"
#include "cli/printable.h"
#include "cli/remedy.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/format.h"
#include "llm/conversation.h"
#include "llm/session_file.h"

namespace cria::cli {
namespace {

struct ChatOptions {
  std::string model_path;
  std::string system_prompt;
  std::string session_path;
  size_t max_tokens = 0;
  WhenFull when_full = WhenFull::kStop;
  std::string color = "auto";
  EngineOptions engine;
  SamplerOptions sampler;
};

constexpr const char* kHelp =
    "/reset  start a new conversation\n"
    "/stats  speed of the last answer, and the memory in use\n"
    "/exit   leave (also Ctrl-D)\n"
    "Ctrl-C stops an answer.\n";

// A conversation between standard input and standard output.
class ChatLoop {
 public:
  ChatLoop(Engine& engine, Sampler sampler, const ChatOptions& options, double load_ms)
      : engine_(engine),
        sampler_(std::move(sampler)),
        options_(options),
        load_ms_(load_ms),
        session_(engine.scheduler()),
        conversation_(session_, engine.tokenizer(), engine.chat_template(), options.system_prompt,
                      options.when_full) {}

  // Goes on from the file of --session, or makes one: a path that cannot be written is an error
  // before the first message.
  Status OpenSession() {
    const std::string& path = options_.session_path;
    if (path.empty()) return {};
    const Result<std::string> why_read_again = LoadConversation(path, conversation_, engine_);
    if (!why_read_again && why_read_again.error().code() == ErrorCode::kNotFound) {
      return SaveConversation(path, conversation_, engine_);
    }
    CRIA_RETURN_IF_ERROR(why_read_again);
    const auto messages = conversation_.messages();
    const std::string& system_prompt = options_.system_prompt;
    if (!system_prompt.empty() && (messages.empty() || messages.front().role != "system" ||
                                   messages.front().content != system_prompt)) {
      return Fail(ErrorCode::kUsage,
                  Format("{}: has another system prompt than -sys; leave it out, or choose another "
                         "--session",
                         path));
    }
    said_forgotten_ = conversation_.has_forgotten();
    std::fprintf(stderr, "%s: %zu messages", Printable(path).c_str(), messages.size());
    if (why_read_again->empty()) {
      std::fprintf(stderr, ", %zu tokens\n", session_.tokens().size());
    } else {
      std::fprintf(stderr, ", which are read again with the next one, because %s\n",
                   why_read_again->c_str());
    }
    return {};
  }

  Status Run() {
    LineReader reader(IsTerminal(stdin) ? "> " : "");
    while (const std::optional<std::string> line = reader.Next()) {
      if (line->empty()) continue;
      if (*line == "/exit" || *line == "/quit") break;
      if (line->front() == '/') {
        RunCommand(*line);
        continue;
      }
      // Input that is not typed is printed, so that the output is a complete record.
      if (!IsTerminal(stdin)) std::printf("> %s\n", line->c_str());
      CRIA_RETURN_IF_ERROR(Answer(*line));
    }
    return is_saved_ ? Status() : SaveConversation(options_.session_path, conversation_, engine_);
  }

  void PrintStats() {
    std::fprintf(stderr, "%s | context %zu of %zu tokens\n",
                 StatsLine(engine_, session_, load_ms_, first_token_ms_).c_str(),
                 session_.tokens().size(), session_.context_tokens());
  }

 private:
  void RunCommand(const std::string& line) {
    if (line == "/reset") {
      conversation_.Reset();
      session_.Clear();
      said_forgotten_ = false;
      SaveSession();
      std::fputs("(forgotten)\n", stderr);
    } else if (line == "/stats") {
      PrintStats();
      std::fprintf(stderr, "%s\n", MemoryUsageLine(engine_.memory_plan()).c_str());
    } else {
      std::fputs(kHelp, stderr);
    }
  }

  // After an error, the chat goes on, and ends with it if the last attempt fails, too.
  void SaveSession() {
    if (options_.session_path.empty()) return;
    const Status saved = SaveConversation(options_.session_path, conversation_, engine_);
    is_saved_ = saved.has_value();
    if (!saved) {
      std::fprintf(stderr, "(not saved: %s)\n", Printable(Sentence(saved.error())).c_str());
    }
  }

  // After an error of one message, such as one that does not fit the context, the chat goes on.
  Status Answer(const std::string& line) {
    const auto start = std::chrono::steady_clock::now();
    first_token_ms_ = 0.0;
    session_.ResetStats();
    const InterruptGuard interrupt;
    const bool color = options_.color == "on" || (options_.color == "auto" && UseColor(stdout));
    if (color) std::fputs("\033[36m", stdout);
    const Result<StopReason> reason =
        conversation_.Reply(line,
                            {.max_tokens = options_.max_tokens,
                             .stop_token_ids = engine_.file().stop_token_ids(),
                             .cancel = interrupt.flag()},
                            sampler_, [&](std::string_view text) {
                              if (first_token_ms_ == 0.0) {
                                first_token_ms_ = MillisecondsSince(start);
                              }
                              std::fwrite(text.data(), 1, text.size(), stdout);
                              std::fflush(stdout);
                            });
    if (color) std::fputs("\033[0m", stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (!reason) {
      // Any other error would happen again with the next message.
      const bool is_of_this_message = reason.error().code() == ErrorCode::kOutOfRange ||
                                      reason.error().code() == ErrorCode::kUsage ||
                                      reason.error().code() == ErrorCode::kCancelled;
      if (!is_of_this_message) return std::unexpected(reason.error());
      std::fprintf(stderr, "(%s; /reset starts a new conversation)\n",
                   Printable(Sentence(reason.error())).c_str());
    } else if (*reason == StopReason::kContextFull) {
      const char* remedy =
          options_.when_full == WhenFull::kStop
              ? "/reset starts a new conversation, -c makes the context larger, --context-full "
                "shift forgets the oldest turns"
              : "the system prompt leaves no room; shorten it or ask for a larger "
                "context with -c";
      std::fprintf(stderr, "(the context of %zu tokens is full: %s)\n", session_.context_tokens(),
                   remedy);
    } else if (*reason == StopReason::kCancelled) {
      std::fputs("(stopped)\n", stderr);
    }
    if (conversation_.has_forgotten() && !said_forgotten_) {
      said_forgotten_ = true;
      std::fprintf(stderr,
                   "(the context of %zu tokens is full: the oldest turns are forgotten from now "
                   "on)\n",
                   session_.context_tokens());
    }
    SaveSession();
    return {};
  }

  Engine& engine_;
  Sampler sampler_;
  const ChatOptions& options_;
  double load_ms_;
  double first_token_ms_ = 0.0;
  bool said_forgotten_ = false;
  bool is_saved_ = true;
  Session session_;
  Conversation conversation_;
};

Status Chat(const ChatOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        LoadEngine(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler,
                        Sampler::Create(options.sampler, engine->decoder().vocab_size()));
  const double load_ms = MillisecondsSince(start);
  std::fprintf(stderr, "%s, %zu tokens of context, %zu threads. /help lists the commands.\n",
               Printable(engine->file().name()).c_str(), engine->decoder().context_tokens(),
               engine->pool().num_threads());
  if (engine->file().chat_template_source().empty()) {
    std::fputs("The model has no chat template: it will continue the text rather than answer.\n",
               stderr);
  }
  ChatLoop loop(*engine, std::move(sampler), options, load_ms);
  CRIA_RETURN_IF_ERROR(loop.OpenSession());
  CRIA_RETURN_IF_ERROR(loop.Run());
  loop.PrintStats();
  return {};
}

}  // namespace

void AddChatCommand(CommandLine& program) {
  auto options = std::make_shared<ChatOptions>();
  CommandLine& command = program.AddCommand("chat", "Hold a conversation");
  AddModelOption(command, options->model_path);
  command.AddText("-sys,--system-prompt", options->system_prompt,
                  "System prompt: what the model is told before the conversation");
  AddSessionOption(command, options->session_path, "the conversation");
  AddPredictOption(command, options->max_tokens, "Maximum number of tokens of an answer");
  AddContextFullOption(command, options->when_full, "forget the oldest turns");
  command
      .AddChoice("--color", options->color, {{"auto", "auto"}, {"on", "on"}, {"off", "off"}},
                 "Color the answers: auto, on or off")
      .Default(options->color);
  AddEngineOptions(command, options->engine);
  AddSamplerOptions(command, options->sampler);
  command.SetAction([options] { return Chat(*options); });
}

}  // namespace cria::cli
