#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/answer_printer.h"
#include "cli/flags/constraint_options.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/template_options.h"
#include "cli/report.h"
#include "llm/conversation.h"
#include "llm/engine.h"
#include "llm/sampler.h"

namespace cria::cli {

// What `cria chat` was told by its flags. A user may change some of it at the prompt.
struct ChatOptions {
  std::string model_path;
  std::string system_prompt;
  std::string session_path;
  size_t max_tokens = 0;  // The longest answer; 0: no limit.
  WhenFull when_full = WhenFull::kShift;
  bool is_quiet = false;       // Only answers, notices and errors are printed.
  bool has_prompt = false;     // Advice may name commands such as /reset.
  bool shows_figures = false;  // The figures of each answer are printed after it.
  EngineOptions engine;
  SamplerOptions sampler;
  ConstraintOptions constraint;  // Each answer must match it.
  TextOptions text;
  TemplateOptions chat_template;
};

// A conversation with a model, with the file in which it is kept, its sampler, and the figures of
// the last answer. Answers go to standard output, notices to standard error.
class Chat {
 public:
  // `engine` must outlive the chat. `start` is when loading it began.
  static Result<std::unique_ptr<Chat>> Create(Engine& engine, ChatOptions options,
                                              std::chrono::steady_clock::time_point start);
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  // Goes on from the file of --session, or makes one: a path that cannot be written is an error
  // before the first message.
  Status OpenSession();
  // Fails if the last attempt to write the file of --session failed.
  Status CloseSession();
  // Adds messages to the conversation. Fails if there are two system prompts.
  Status AddMessages(std::vector<ChatMessage> messages);

  // Generates an answer, prints it while it comes, and keeps the conversation in the file of
  // --session. Ctrl-C ends the answer, which is then kept as far as it came: the reason is
  // kCancelled. After an error of one message (IsOfOneMessage) the chat can go on.
  Result<StopReason> AnswerTo(std::string_view message, const AnswerStyle& style);
  // Answers the last message of the conversation.
  Result<StopReason> AnswerLast(const AnswerStyle& style);
  // Replaces the last answer by another one.
  Result<StopReason> AnswerAgain(const AnswerStyle& style);
  static bool IsOfOneMessage(const Error& error);

  // Begins a new conversation, with the system prompt.
  void Reset();
  Status DropLastTurn();
  // Holds from the next answer on; empty: there is no system prompt.
  Status SetSystemPrompt(std::string_view text);
  std::string system_prompt() const;
  Status SaveTo(const std::string& path);
  Status LoadFrom(const std::string& path);
  // Changes a sampler's option; keeps the old ones if one is wrong.
  Status SetSampler(const SamplerOptions& options);
  // Fails if the model's template cannot turn reasoning on or off as wanted, or if reasoning would
  // have to match the constraint of the answers.
  Status SetThinking(Thinking thinking);
  void SetShowsFigures(bool shows_figures) { options_.shows_figures = shows_figures; }
  void SetMaxTokens(size_t max_tokens) { options_.max_tokens = max_tokens; }
  void SetWhenFull(WhenFull when_full);

  const ChatOptions& options() const { return options_; }
  const Engine& engine() const { return engine_; }
  const Session& session() const { return *session_; }
  const Conversation& conversation() const { return conversation_; }
  // Speed of the last answer, and how full the context is.
  std::string StatsText() const;
  // Tokens/s of generating the last answers, the newest one last; at most kMaxSpeeds.
  std::span<const double> speeds() const { return speeds_; }

 private:
  static constexpr size_t kMaxSpeeds = 24;

  Chat(Engine& engine, Sampler sampler, StopStrings stop_strings,
       std::unique_ptr<Constraint> constraint, ChatOptions options);

  Result<std::string> TemplateVariables(TemplateOptions options) const;

  enum class Question : uint8_t { kNew, kLast, kAgain };
  Result<StopReason> Answer(Question question, std::string_view message, const AnswerStyle& style);
  void TellLeftOut(std::string_view message) const;
  bool BeginsInReasoning(Question question, std::string_view message) const;
  Error Explained(Error error, std::string_view message) const;
  const char* MakeRoomText() const;
  const char* FullContextText() const;
  void PrintJsonAnswer(const AnswerPrinter& printer, StopReason reason) const;
  void PrintNotices(StopReason reason);
  void NoteSpeed();
  void SaveSession();
  void TellLoaded(const std::string& path, const std::string& why_read_again) const;

  Engine& engine_;
  Sampler sampler_;
  StopStrings stop_strings_;
  std::unique_ptr<Constraint> constraint_;  // Null: there is none.
  ChatOptions options_;
  RunFigures figures_;
  std::vector<double> speeds_;
  // Whether turns were forgotten since the conversation began, was reset or was loaded.
  bool has_forgotten_ = false;
  bool said_forgotten_ = false;
  Status saved_;
  std::unique_ptr<Session> session_;
  Conversation conversation_;
};

}  // namespace cria::cli
