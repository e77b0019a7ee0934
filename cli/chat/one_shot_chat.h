#pragma once

#include <optional>
#include <string>

#include "cli/chat/chat.h"
#include "cli/input/prompt_source.h"
#include "cria/error.h"

namespace cria::cli {

// Messages that are known beforehand, so that nobody types.
struct OneShotOptions {
  PromptSource message;
  std::optional<std::string> messages_path;  // A file with the messages of a conversation.
  bool each_line = false;                    // Each line of standard input is a message.
  bool display_prompt = false;               // Prints each message before its answer.
  bool shows_prompts = false;                // Prints "> " where a line is expected.
  bool is_single_turn = false;               // Ends after the first answer.

  // Whether standard input is not needed, or asked for.
  bool is_given() const { return message.is_given() || messages_path || each_line; }
};

// Prints the answers to these messages, and nothing else on standard output. Without a message,
// standard input has it. Fails with kCancelled after Ctrl-C. If each line is a message, goes on
// after one that cannot be answered, and fails at the end.
Status AnswerAndEnd(Chat& chat, const OneShotOptions& options, const AnswerStyle& style);

}  // namespace cria::cli
