#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "cria/error.h"

namespace cria::cli {

// Where a command takes its text from.
struct PromptSource {
  std::optional<std::string> text;  // -p
  std::optional<std::string> file;  // -f; "-" is standard input.

  bool is_given() const { return text || file; }
};

// The options -p and -f, with their help.
void AddPromptOptions(CommandLine& command, PromptSource& source, const char* text_help,
                      const char* file_help);

// The text of -p or -f. If neither is given, that of standard input, unless it is a terminal: then
// there is none.
Result<std::optional<std::string>> ReadPrompt(const PromptSource& source);

}  // namespace cria::cli
