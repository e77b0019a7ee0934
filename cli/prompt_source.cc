#include "cli/prompt_source.h"

#include <cstdio>

#include "cli/terminal.h"
#include "cli/text_file.h"

namespace cria::cli {

void AddPromptOptions(CommandLine& command, PromptSource& source, const char* text_help,
                      const char* file_help) {
  Option& text = command.AddText("-p,--prompt", source.text, text_help);
  command
      .AddText("-f,--file", source.file,
               std::string(file_help) +
                   "; -: standard input, which is the default if it is not a terminal")
      .Excludes(text)
      .Metavar("FILE");
}

Result<std::optional<std::string>> ReadPrompt(const PromptSource& source) {
  if (source.text) return source.text;
  if (!source.file && IsTerminal(stdin)) return std::nullopt;
  return ReadTextFile(source.file.value_or("-"));
}

}  // namespace cria::cli
