#pragma once

#include <optional>
#include <string>

#include "cli/chat/chat.h"
#include "cria/error.h"

namespace cria::cli {

struct InteractiveOptions {
  bool is_single_turn = false;  // The chat ends after one answer.
  bool keep_history = true;     // What is typed is remembered for later chats.
  AnswerStyle style;
};

// Answers messages that a user types at the terminal, and runs commands, until the user leaves or
// wants another model, whose name is then the result. `files` go before the next message.
Result<std::optional<std::string>> ChatAtTerminal(Chat& chat, const InteractiveOptions& options,
                                                  std::string& files);

}  // namespace cria::cli
