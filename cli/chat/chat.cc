#include "cli/chat/chat.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cli/input/left_out.h"
#include "cli/remedy.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/tell.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/platform.h"
#include "llm/session_file.h"
#include "llm/session_file_layout.h"

namespace cria::cli {
namespace {

constexpr const char* kSystemRole = "system";

bool IsSessionFile(const std::string& path) {
  // Refuses a named pipe, which might never have a byte.
  const auto file = platform::File::Open(path);
  std::array<char, kSessionMagic.size()> magic = {};
  return file && file->ReadAt(0, std::as_writable_bytes(std::span(magic))) &&
         magic == kSessionMagic;
}

// Shows the progress of reading a prompt at a terminal, if it takes longer than a moment.
class ReadingProgress {
 public:
  bool Update(size_t done, size_t total) {
    constexpr double kMomentMs = 300.0;
    if (!bar_ && ProgressBar::CanRedraw() && MillisecondsSince(begin_) > kMomentMs) {
      bar_.emplace("reading");
    }
    if (bar_) bar_->Update(done, total, "tokens");
    return true;
  }
  void Clear() { bar_.reset(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<ProgressBar> bar_;
};

}  // namespace

Result<std::unique_ptr<Chat>> Chat::Create(Engine& engine, ChatOptions options,
                                           std::chrono::steady_clock::time_point start) {
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, engine.NewSampler(options.sampler));
  CRIA_ASSIGN_OR_RETURN(StopStrings stop_strings, options.text.MakeStopStrings());
  CRIA_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint, options.constraint.Make(engine));
  std::unique_ptr<Chat> chat(new Chat(engine, std::move(sampler), std::move(stop_strings),
                                      std::move(constraint), std::move(options)));
  CRIA_RETURN_IF_ERROR(chat->SetThinking(chat->options_.chat_template.thinking));
  chat->figures_.load_ms = MillisecondsSince(start);
  return chat;
}

Chat::Chat(Engine& engine, Sampler sampler, StopStrings stop_strings,
           std::unique_ptr<Constraint> constraint, ChatOptions options)
    : engine_(engine),
      sampler_(std::move(sampler)),
      stop_strings_(std::move(stop_strings)),
      constraint_(std::move(constraint)),
      options_(std::move(options)),
      figures_({.seed = options_.sampler.seed}),
      session_(engine.NewSession()),
      conversation_(*session_, engine.tokenizer(), engine.chat_template(),
                    options_.text.Read(options_.system_prompt), options_.when_full) {}

Status Chat::OpenSession() {
  const std::string& path = options_.session_path;
  if (path.empty()) return {};
  const Result<std::string> why_read_again = LoadConversation(path, conversation_, engine_);
  if (!why_read_again && why_read_again.error().code() == ErrorCode::kNotFound) {
    return SaveConversation(path, conversation_, engine_);
  }
  CRIA_RETURN_IF_ERROR(why_read_again);
  if (!options_.system_prompt.empty() &&
      system_prompt() != options_.text.Read(options_.system_prompt)) {
    return Fail(ErrorCode::kUsage,
                Format("{}: has another system prompt than -sys; leave it out, or choose another "
                       "--session",
                       path));
  }
  TellLoaded(path, *why_read_again);
  return {};
}

Status Chat::CloseSession() {
  return saved_ ? Status() : SaveConversation(options_.session_path, conversation_, engine_);
}

void Chat::TellLoaded(const std::string& path, const std::string& why_read_again) const {
  if (options_.is_quiet) return;
  const std::string rest =
      why_read_again.empty()
          ? Format("{} tokens", session_->tokens().size())
          : Format("which are read again with the next one, because {}", why_read_again);
  Tell(Format("{}: {} messages, {}", Printable(path), conversation_.messages().size(), rest));
}

bool Chat::IsOfOneMessage(const Error& error) {
  return error.code() == ErrorCode::kOutOfRange || error.code() == ErrorCode::kUsage ||
         error.code() == ErrorCode::kCancelled;
}

Result<StopReason> Chat::AnswerTo(std::string_view message, const AnswerStyle& style) {
  return Answer(Question::kNew, message, style);
}

Result<StopReason> Chat::AnswerLast(const AnswerStyle& style) {
  return Answer(Question::kLast, "", style);
}

Result<StopReason> Chat::AnswerAgain(const AnswerStyle& style) {
  return Answer(Question::kAgain, "", style);
}

Result<StopReason> Chat::Answer(Question question, std::string_view message,
                                const AnswerStyle& style) {
  const auto start = std::chrono::steady_clock::now();
  if (question != Question::kAgain) TellLeftOut(message);
  figures_.first_token_ms = 0.0;
  session_->ResetStats();
  const InterruptGuard interrupt;
  ReadingProgress progress;
  AnswerStyle shown = style;
  if (options_.chat_template.thinking == Thinking::kHide) shown.shows_reasoning = false;
  AnswerPrinter printer(shown, FindReasoningTags(engine_.chat_template()),
                        BeginsInReasoning(question, message), [&] { progress.Clear(); });
  const TextCallback print = [&](std::string_view text) {
    if (figures_.first_token_ms == 0.0) figures_.first_token_ms = MillisecondsSince(start);
    printer.Append(text);
  };
  const GenerationOptions generation = {
      .max_tokens = options_.max_tokens,
      .stop_token_ids = engine_.file().stop_token_ids(),
      .constraint = constraint_.get(),
      .cancel = interrupt.flag(),
      .on_prompt = [&](size_t done, size_t total) { return progress.Update(done, total); },
      .stop_strings = options_.text.stop_strings.empty() ? nullptr : &stop_strings_};
  Result<StopReason> reason =
      question == Question::kNew    ? conversation_.Reply(message, generation, sampler_, print)
      : question == Question::kLast ? conversation_.Answer(generation, sampler_, print)
                                    : conversation_.Regenerate(generation, sampler_, print);
  has_forgotten_ = has_forgotten_ || conversation_.has_just_forgotten();
  progress.Clear();
  printer.Finish(reason.has_value());
  if (!reason) return std::unexpected(Explained(std::move(reason.error()), message));
  NoteSpeed();
  if (style.format == AnswerFormat::kJson) PrintJsonAnswer(printer, *reason);
  PrintNotices(*reason);
  if (options_.shows_figures) Tell(Format("({})", StatsText()));
  SaveSession();
  return reason;
}

// Says what of a new message, and of messages that were not answered yet, the model cannot read.
void Chat::TellLeftOut(std::string_view message) const {
  std::string text(message);
  for (const ChatMessage& earlier : conversation_.messages()) {
    if (session_->tokens().empty()) text += earlier.content;
  }
  if (const std::string notice = LeftOutNotice(engine_.tokenizer(), text); !notice.empty()) {
    Tell(Format("({})", notice));
  }
}

bool Chat::BeginsInReasoning(Question question, std::string_view message) const {
  // What the model is made to write is the answer, even if the template has opened its reasoning.
  if (constraint_ != nullptr) return false;
  const auto now = conversation_.messages();
  std::vector<ChatMessage> messages(now.begin(), now.end());
  if (question == Question::kNew) messages.push_back({"user", std::string(message)});
  if (question == Question::kAgain && !messages.empty()) messages.pop_back();
  return OpensReasoning(engine_.chat_template(), messages, conversation_.State().variables);
}

void Chat::PrintJsonAnswer(const AnswerPrinter& printer, StopReason reason) const {
  nlohmann::ordered_json object = {{"role", "assistant"}, {"content", printer.answer()}};
  if (!printer.reasoning().empty()) object["reasoning_content"] = printer.reasoning();
  object["stop_reason"] = StopReasonName(reason);
  AddStats(object, engine_, *session_, figures_);
  PrintJson(object);
}

// If the message alone does not fit into the context, says which context would hold it.
Error Chat::Explained(Error error, std::string_view message) const {
  if (error.remedy().kind != RemedyKind::kLargerContext || message.empty()) return error;
  std::vector<ChatMessage> alone;
  if (const std::string system = system_prompt(); !system.empty()) {
    alone.push_back({kSystemRole, system});
  }
  alone.push_back({"user", std::string(message)});
  const size_t context = session_->context_tokens();
  const size_t longest = engine_.file().config().longest_context();
  const std::string variables = conversation_.State().variables;
  const auto tokens = engine_.chat_template().Encode(
      engine_.tokenizer(), alone, {.add_generation_prompt = true, .variables = variables}, longest);
  if (!tokens) {
    if (tokens.error().remedy().kind != RemedyKind::kLargerContext) return tokens.error();
    return {ErrorCode::kOutOfRange,
            Format("the message takes more tokens than the {} that the model can read; shorten it",
                   longest)};
  }
  if (tokens->size() < context) {
    return {ErrorCode::kOutOfRange,
            Format("the conversation with this message takes more than the {} tokens of the "
                   "context; {}",
                   context, MakeRoomText())};
  }
  // A quarter of the context is for the answer.
  const size_t wanted = std::min(tokens->size() * 4 / 3 + 1, longest);
  return {ErrorCode::kOutOfRange,
          Format("the message takes {} tokens{}, but the context holds {}; shorten it, or ask for "
                 "a larger context with -c {}",
                 tokens->size(), system_prompt().empty() ? "" : " with the system prompt", context,
                 wanted)};
}

// How to go on when the conversation has filled the context.
const char* Chat::MakeRoomText() const {
  return options_.has_prompt
             ? "/reset begins a new conversation, /set context-full shift forgets the oldest "
               "turns, and a larger -c holds more"
             : "--context-full shift forgets the oldest turns, and a larger -c holds more";
}

// Why an answer ended where the context was full.
const char* Chat::FullContextText() const {
  switch (options_.when_full) {
    case WhenFull::kStop:
      return MakeRoomText();
    case WhenFull::kForget:
      return options_.has_prompt
                 ? "the answer ends here; a larger -c holds more, and with /set context-full shift "
                   "answers go on without their beginning"
                 : "the answer ends here; a larger -c holds more, and with --context-full shift "
                   "answers go on without their beginning";
    case WhenFull::kShift:
      break;
  }
  return "the system prompt leaves no room; shorten it or ask for a larger context with -c";
}

void Chat::PrintNotices(StopReason reason) {
  const size_t context = session_->context_tokens();
  if (reason == StopReason::kContextFull) {
    Tell(Format("(the context of {} tokens is full: {})", context, FullContextText()));
  } else if (reason == StopReason::kCancelled) {
    Tell("(stopped)");
  }
  if (const std::string notice = UnfinishedNotice(reason, constraint_.get()); !notice.empty()) {
    Tell(Format("({})", notice));
  }
  if (has_forgotten_ && !said_forgotten_) {
    Tell(Format("(the context of {} tokens is full: the oldest turns are forgotten from now on)",
                context));
  }
  said_forgotten_ = has_forgotten_;
}

// After an error, the chat goes on, and ends with it if the last attempt fails, too.
void Chat::SaveSession() {
  if (options_.session_path.empty()) return;
  saved_ = SaveConversation(options_.session_path, conversation_, engine_);
  if (!saved_) {
    Tell(Format("(not saved: {})", Printable(Sentence(saved_.error()))));
  }
}

void Chat::Reset() {
  conversation_.Reset();
  session_->Clear();
  has_forgotten_ = said_forgotten_ = false;
  SaveSession();
}

Status Chat::DropLastTurn() {
  CRIA_RETURN_IF_ERROR(conversation_.DropLastTurn());
  SaveSession();
  return {};
}

Status Chat::AddMessages(std::vector<ChatMessage> messages) {
  ConversationState state = conversation_.State();
  const auto is_system = [](const ChatMessage& message) {
    return message.role == kSystemRole || message.role == "developer";
  };
  if (!state.messages.empty() && std::ranges::any_of(messages, is_system)) {
    return Fail(ErrorCode::kUsage,
                "the messages have a system prompt, and -sys or --session gives another; leave one "
                "out");
  }
  state.messages.insert(state.messages.end(), std::make_move_iterator(messages.begin()),
                        std::make_move_iterator(messages.end()));
  state.num_system_messages = static_cast<size_t>(
      std::ranges::find_if_not(state.messages, is_system) - state.messages.begin());
  return conversation_.Restore(std::move(state));
}

std::string Chat::system_prompt() const {
  const auto messages = conversation_.messages();
  return messages.empty() || messages.front().role != kSystemRole ? "" : messages.front().content;
}

Status Chat::SetSystemPrompt(std::string_view text) {
  ConversationState state = conversation_.State();
  const auto begin = state.messages.begin();
  state.messages.erase(begin, begin + static_cast<ptrdiff_t>(state.num_system_messages));
  state.num_system_messages = text.empty() ? 0 : 1;
  if (!text.empty()) {
    state.messages.insert(state.messages.begin(), {kSystemRole, std::string(text)});
  }
  CRIA_RETURN_IF_ERROR(conversation_.Restore(std::move(state)));
  SaveSession();
  return {};
}

Status Chat::SaveTo(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !IsSessionFile(path)) {
    return Fail(ErrorCode::kUsage,
                Format("{}: exists and is not a session file; choose another name", path));
  }
  return SaveConversation(path, conversation_, engine_);
}

Status Chat::LoadFrom(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(const std::string why_read_again,
                        LoadConversation(path, conversation_, engine_));
  TellLoaded(path, why_read_again);
  has_forgotten_ = said_forgotten_ = false;
  SaveSession();
  return {};
}

Status Chat::SetSampler(const SamplerOptions& options) {
  CRIA_ASSIGN_OR_RETURN(sampler_, engine_.NewSampler(options));
  options_.sampler = options;
  figures_.seed = options.seed;
  return {};
}

Status Chat::SetThinking(Thinking thinking) {
  TemplateOptions changed = options_.chat_template;
  changed.thinking = thinking;
  CRIA_ASSIGN_OR_RETURN(std::string variables, TemplateVariables(changed));
  CRIA_RETURN_IF_ERROR(conversation_.SetVariables(std::move(variables)));
  options_.chat_template = std::move(changed);
  return {};
}

Result<std::string> Chat::TemplateVariables(TemplateOptions options) const {
  const ChatTemplate& chat_template = engine_.chat_template();
  if (constraint_ == nullptr) return VariablesFor(chat_template, options);
  if (options.thinking == Thinking::kOn || options.thinking == Thinking::kHide) {
    return Fail(ErrorCode::kUsage,
                "the answers match what was asked for from their beginning, so that the model "
                "cannot think before them: turn thinking off, or ask for free text");
  }
  CRIA_ASSIGN_OR_RETURN(const std::string variables, VariablesFor(chat_template, options));
  options.thinking = Thinking::kOff;
  // Some templates have no switch, and in others the user's own variables have set it.
  return VariablesFor(chat_template, options).value_or(variables);
}

void Chat::SetWhenFull(WhenFull when_full) {
  options_.when_full = when_full;
  conversation_.set_when_full(when_full);
}

void Chat::NoteSpeed() {
  const SessionStats& stats = session_->stats();
  const double seconds = std::chrono::duration<double>(stats.decode_time).count();
  if (stats.decoded_tokens == 0 || seconds <= 0.0) return;
  if (speeds_.size() == kMaxSpeeds) speeds_.erase(speeds_.begin());
  speeds_.push_back(static_cast<double>(stats.decoded_tokens) / seconds);
}

std::string Chat::StatsText() const {
  return Format("{} | context {} of {} tokens", StatsLine(engine_, *session_, figures_),
                session_->tokens().size(), session_->context_tokens());
}

}  // namespace cria::cli
