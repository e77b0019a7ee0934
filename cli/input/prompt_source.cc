#include "cli/input/prompt_source.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "cli/terminal/terminal.h"
#include "core/format.h"

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

TextBound PromptBound(const Engine& engine) {
  constexpr uint64_t kMinBytes = uint64_t{64} << 10;
  constexpr uint64_t kMaxBytes = uint64_t{4} << 20;
  const size_t context = engine.decoder().context_tokens();
  const uint64_t bytes = uint64_t{context} * engine.tokenizer().longest_piece_bytes();
  return {
      static_cast<size_t>(std::clamp(bytes, kMinBytes, kMaxBytes)),
      Format("can fit the context of {} tokens; shorten it, or ask for a larger context with -c",
             context)};
}

Result<std::optional<std::string>> ReadPrompt(const PromptSource& source, const TextBound& bound) {
  if (source.text) return source.text;
  if (!source.file && IsTerminal(stdin)) return std::nullopt;
  return ReadTextFile(source.file.value_or("-"), bound);
}

}  // namespace cria::cli
