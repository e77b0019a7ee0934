#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat/chat.h"
#include "cli/chat/interactive_chat.h"
#include "cli/chat/one_shot_chat.h"
#include "cli/commands/commands.h"
#include "cli/engine_loader.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/options.h"
#include "cli/flags/template_options.h"
#include "cli/models/get_model.h"
#include "cli/remedy.h"
#include "cli/report.h"
#include "cli/start_engine.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/tell.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace cria::cli {
namespace {

struct ChatArguments {
  ModelChoice model;
  ChatOptions chat;
  OneShotOptions one_shot;
  bool is_single_turn = false;
  bool no_history = false;
  // Absent: it depends on who reads the answers.
  std::optional<WhenFull> when_full;
  AnswerFormat format = AnswerFormat::kText;
  std::string color = "auto";
};

bool IsTyped(const ChatArguments& arguments) {
  return !arguments.one_shot.is_given() && IsTerminal(stdin);
}

void TellModel(const Engine& engine, bool is_typed) {
  if (is_typed) {
    Tell(Format("{}, {} tokens of context, {}. /help lists the commands.",
                Printable(engine.file().name()), engine.decoder().context_tokens(),
                CountText(engine.pool().num_threads(), "thread")));
  }
  if (engine.file().chat_template_source().empty()) {
    Tell("The model has no chat template: it will continue the text rather than answer.");
  }
}

// Reasoning is no part of the answer, so that only people see it.
AnswerStyle StyleOf(const ChatArguments& arguments, bool is_typed) {
  const std::string& color = arguments.color;
  const bool is_colored = color == "on" || (color == "auto" && UseColor(stdout));
  AnswerStyle style = {.format = arguments.format,
                       .shows_reasoning = IsTerminal(stdout),
                       .wraps_words = IsTerminal(stdout)};
  if (is_colored) {
    style.begin_reasoning = "\033[2m";
    style.end_reasoning = "\033[0m";
  }
  if (is_colored && is_typed) {
    style.begin_answer = "\033[36m";
    style.end_answer = "\033[0m";
  }
  return style;
}

// A chat with the model that answers it.
struct LoadedChat {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Chat> chat;
};

// Loads the model of the options. The conversation is that of --session, if there is one, otherwise
// it begins with `messages`.
Result<LoadedChat> LoadChat(const ChatOptions& options, std::vector<ChatMessage> messages,
                            bool is_typed) {
  const auto start = std::chrono::steady_clock::now();
  LoadedChat loaded;
  CRIA_ASSIGN_OR_RETURN(loaded.engine, LoadEngine(options.model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(loaded.chat, Chat::Create(*loaded.engine, options, start));
  if (!options.is_quiet) TellModel(*loaded.engine, is_typed);
  CRIA_RETURN_IF_ERROR(loaded.chat->OpenSession());
  if (options.session_path.empty() && !messages.empty()) {
    CRIA_RETURN_IF_ERROR(loaded.chat->AddMessages(std::move(messages)));
  }
  return loaded;
}

// Goes on with another model. After a failure, `loaded` has the model before, or no chat if that
// cannot be loaded again.
Status ChangeModel(const std::string& name, bool agrees, LoadedChat& loaded) {
  ChatOptions options = loaded.chat->options();
  CRIA_ASSIGN_OR_RETURN(const std::string path, GetModel({name, agrees}, options.engine));
  CRIA_RETURN_IF_ERROR(loaded.chat->CloseSession());
  const std::string path_before = std::exchange(options.model_path, path);
  const auto kept = loaded.chat->conversation().messages();
  const std::vector<ChatMessage> messages(kept.begin(), kept.end());
  options.system_prompt.clear();  // It is among the messages.
  // The memory of two models at the same time is not planned.
  loaded.chat.reset();
  loaded.engine.reset();
  Result<LoadedChat> other = LoadChat(options, messages, /*is_typed=*/true);
  if (other) {
    loaded = *std::move(other);
    return {};
  }
  options.model_path = path_before;
  CRIA_ASSIGN_OR_RETURN(loaded, LoadChat(options, messages, /*is_typed=*/true));
  return std::unexpected(other.error());
}

Status ChatTyped(const InteractiveOptions& options, bool agrees, LoadedChat& loaded) {
  std::string files;
  while (true) {
    CRIA_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                          ChatAtTerminal(*loaded.chat, options, files));
    if (!name) return {};
    const Status changed = ChangeModel(*name, agrees, loaded);
    if (changed) continue;
    if (loaded.chat == nullptr) return changed;
    Tell(Format("({})", Printable(Sentence(changed.error()))));
  }
}

Status RunChat(ChatArguments& arguments) {
  if (NumRanks() > 1 && !arguments.one_shot.is_given()) {
    // Somebody may type at mpirun, which hands every line on.
    OneShotOptions& one_shot = arguments.one_shot;
    one_shot.each_line = true;
    one_shot.shows_prompts = arguments.format == AnswerFormat::kText && !one_shot.display_prompt;
    one_shot.is_single_turn = arguments.is_single_turn;
  }
  const bool is_typed = IsTyped(arguments);
  const bool is_quiet = arguments.chat.is_quiet;
  arguments.chat.has_prompt = is_typed;
  // Nobody may be there to stop an answer that repeats itself without an end.
  arguments.chat.when_full =
      arguments.when_full.value_or(is_typed ? WhenFull::kShift : WhenFull::kForget);
  std::optional<std::string>& message = arguments.one_shot.message.text;
  if (message) message = arguments.chat.text.Read(*message);
  CRIA_ASSIGN_OR_RETURN(arguments.chat.model_path,
                        GetModel(arguments.model, arguments.chat.engine));
  CRIA_ASSIGN_OR_RETURN(LoadedChat loaded, LoadChat(arguments.chat, {}, is_typed));
  const AnswerStyle style = StyleOf(arguments, is_typed);
  const Status answered = is_typed ? ChatTyped({.is_single_turn = arguments.is_single_turn,
                                                .keep_history = !arguments.no_history,
                                                .style = style},
                                               arguments.model.agrees, loaded)
                                   : AnswerAndEnd(*loaded.chat, arguments.one_shot, style);
  const bool is_stopped = !answered && answered.error().code() == ErrorCode::kCancelled;
  if (!is_quiet && arguments.format == AnswerFormat::kText && (answered || is_stopped)) {
    Tell(loaded.chat->StatsText());
  }
  CRIA_RETURN_IF_ERROR(answered);
  return loaded.chat->CloseSession();
}

}  // namespace

void AddChatCommand(CommandLine& program) {
  auto arguments = std::make_shared<ChatArguments>();
  ChatOptions& chat = arguments->chat;
  OneShotOptions& one_shot = arguments->one_shot;
  CommandLine& command = program.AddCommand("chat", "Hold a conversation, or answer one message");
  AddModelChoice(command, arguments->model);
  command.AddText("-sys,--system-prompt", chat.system_prompt,
                  "System prompt: what the model is told before the conversation");
  AddPromptOptions(command, one_shot.message, "A message: prints the answer and ends",
                   "A file with the message");
  command
      .AddText("--messages", one_shot.messages_path,
               "A JSON list of objects with role and content; the last one is answered, or the "
               "message of -p or -f, which follows them")
      .Metavar("FILE");
  command
      .AddFlag("--lines", one_shot.each_line,
               "Answer each line of standard input as soon as it is read, as one conversation")
      .Excludes(command.option("--prompt"))
      .Excludes(command.option("--file"))
      .Excludes(command.option("--messages"));
  command.AddFlag("--display-prompt", one_shot.display_prompt,
                  "Print each message before its answer, if it is not typed");
  command
      .AddFlag(
          "--json", [arguments] { arguments->format = AnswerFormat::kJson; },
          "Print the answer and its figures as a JSON object")
      .Excludes(command.option("--display-prompt"));
  command.AddFlag("-q,--quiet", chat.is_quiet, "Print no figures and no greeting");
  AddTextOptions(command, chat.text, "-p, -sys");
  AddSessionOption(command, chat.session_path, "the conversation");
  AddPredictOption(command, chat.max_tokens, "Maximum number of tokens of an answer");
  AddConversationFullOption(command, arguments->when_full)
      .Default("shift where messages are typed, forget elsewhere");
  command.AddFlag("-st,--single-turn", arguments->is_single_turn, "End after one answer");
  command.AddFlag("--no-history", arguments->no_history,
                  "Do not remember what is typed for later chats");
  command
      .AddChoice("--color", arguments->color, {{"auto", "auto"}, {"on", "on"}, {"off", "off"}},
                 "Color the answers: auto, on or off")
      .Default(arguments->color);
  AddTemplateOptions(command, chat.chat_template);
  AddEngineOptions(command, chat.engine);
  AddMaxTempOption(command, chat.engine.thermal);
  AddDraftOptions(command, chat.engine);
  AddSamplerOptions(command, chat.sampler);
  AddConstraintOptions(command, chat.constraint);
  command.SetAction([arguments] {
    ChatOptions& options = arguments->chat;
    options.engine.max_constraints = options.constraint.is_given() ? 1 : 0;
    return RunChat(*arguments);
  });
}

}  // namespace cria::cli
