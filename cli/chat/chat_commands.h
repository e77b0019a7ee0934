#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/chat.h"
#include "cria/error.h"

namespace cria::cli {

// The commands that a user may type at the prompt of a chat: "/reset", "/set temp 0.5". They print
// on standard error, so that standard output has only answers.
class ChatCommands {
 public:
  // `chat` and `files` must outlive this object. /read appends to `files` what goes before the next
  // message; it is the caller's, because it outlives a change of the model.
  ChatCommands(Chat& chat, std::string& files) : chat_(chat), files_(files) {}

  // Whether the text is meant as a command: it is one line that begins with a slash.
  static bool IsCommand(std::string_view text);
  // What the caller does after a command.
  enum class Next : uint8_t { kGoOn, kAnswerAgain, kOtherModel, kLeave };
  // After an error the chat goes on.
  Result<Next> Run(std::string_view text);
  // All commands that begin like this, and after "/set " all options.
  static std::vector<std::string> Complete(std::string_view beginning);

  // What the model is asked: the files that /read has read since the last message, and `message`.
  std::string WithFiles(std::string message);
  // After kOtherModel: what the user called the model.
  const std::string& model_name() const { return model_name_; }

 private:
  struct Command;
  static const std::vector<Command>& All();

  Status Set(std::string_view words);
  Status ReadFile(const std::string& path);
  Status ChooseSeed();
  std::string ModelText() const;
  void Show() const;
  void ShowTokens() const;
  // Draws the memory in use, and the speeds of the last answers, at a terminal.
  void DrawStats() const;

  Chat& chat_;
  std::string& files_;
  std::string model_name_;
};

}  // namespace cria::cli
