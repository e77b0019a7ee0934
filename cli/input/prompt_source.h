#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "cli/input/text_file.h"
#include "cria/error.h"
#include "llm/engine.h"

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

// The bytes that the tokens of a context can have: a longer text certainly does not fit. Never less
// than 64 KiB, so that the error of a text that is a little too long can tell what would hold it,
// and never more than 4 MiB, which are enough for about a million tokens.
TextBound PromptBound(const Engine& engine);

// The text of -p or -f. If neither is given, that of standard input, unless it is a terminal: then
// there is none.
Result<std::optional<std::string>> ReadPrompt(const PromptSource& source, const TextBound& bound);

}  // namespace cria::cli
