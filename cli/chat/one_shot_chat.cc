#include "cli/chat/one_shot_chat.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include "cli/input/messages_file.h"
#include "cli/input/text_file.h"
#include "cli/messages.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// A text file usually ends with a line feed, which is not part of the message.
std::string WithoutLastLineEnd(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// Turns an answer that Ctrl-C ended into an error, so that the program's exit code tells.
Status Finished(const Result<StopReason>& reason) {
  CRIA_RETURN_IF_ERROR(reason);
  if (*reason != StopReason::kCancelled) return {};
  return Fail(ErrorCode::kCancelled, "the answer was stopped");
}

void DisplayPrompt(const std::string& message, const OneShotOptions& options) {
  if (!options.display_prompt) return;
  const std::string line = "> " + message + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

Status AnswerOne(Chat& chat, const std::string& message, const OneShotOptions& options,
                 const AnswerStyle& style) {
  DisplayPrompt(message, options);
  return Finished(chat.AnswerTo(message, style));
}

Status AnswerEachLine(Chat& chat, const OneShotOptions& options, const AnswerStyle& style) {
  size_t num_messages = 0;
  size_t num_refused = 0;
  const TextBound bound = PromptBound(chat.engine());
  const auto read = [&](std::string& line) -> Result<bool> {
    if (options.shows_prompts) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    const Result<bool> has_line = ReadInputLine(line, bound);
    if (has_line && !*has_line && options.shows_prompts) std::fputc('\n', stdout);
    return has_line;
  };
  for (std::string line;;) {
    CRIA_ASSIGN_OR_RETURN(const bool has_line, read(line));
    if (!has_line) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    ++num_messages;
    const Status answered = AnswerOne(chat, line, options, style);
    if (answered) {
      if (options.is_single_turn) break;
      continue;
    }
    const Error& error = answered.error();
    if (error.code() == ErrorCode::kCancelled || !Chat::IsOfOneMessage(error)) return answered;
    ReportError("cria", error);
    ++num_refused;
  }
  if (num_refused == 0) return {};
  return Fail(ErrorCode::kOutOfRange,
              Format("{} of {} messages were refused", num_refused, num_messages));
}

}  // namespace

Status AnswerAndEnd(Chat& chat, const OneShotOptions& options, const AnswerStyle& style) {
  if (options.each_line) return AnswerEachLine(chat, options, style);
  if (options.messages_path) {
    if (options.messages_path == "-" && options.message.file == "-") {
      return Fail(ErrorCode::kUsage, "--messages and -f cannot both read standard input");
    }
    CRIA_ASSIGN_OR_RETURN(std::vector<ChatMessage> messages,
                          ReadMessagesFile(*options.messages_path, chat.engine().chat_template()));
    CRIA_RETURN_IF_ERROR(chat.AddMessages(std::move(messages)));
    if (!options.message.is_given()) {
      DisplayPrompt(chat.conversation().messages().back().content, options);
      return Finished(chat.AnswerLast(style));
    }
  }
  CRIA_ASSIGN_OR_RETURN(std::optional<std::string> message,
                        ReadPrompt(options.message, PromptBound(chat.engine())));
  if (!options.message.text) message = WithoutLastLineEnd(std::move(*message));
  if (message->empty()) return Fail(ErrorCode::kUsage, "the message is empty");
  return AnswerOne(chat, *message, options, style);
}

}  // namespace cria::cli
