#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "llm/sampler.h"
#include "llm/stop_strings.h"

namespace cria::cli {

// Options of the commands that generate text, with llama.cpp's names.

// -n,--predict. `max_tokens` is 0 for no limit; the option accepts -1 for that, too. `help` begins
// the help: "Maximum number of tokens of an answer".
void AddPredictOption(CommandLine& command, size_t& max_tokens, const std::string& help);

// How tokens are chosen. Without -s, and with -s -1, the seed is a random number, which the command
// should print.
void AddSamplerOptions(CommandLine& command, SamplerOptions& options);

// The value of --repeat-last-n and --dry-penalty-last-n: "64", or "-1" for the whole context.
std::string LastNText(size_t value);

// Texts from the command line that are not read as they are written.
struct TextOptions {
  std::vector<std::string> stop_strings;
  bool has_escapes = false;

  // A text of another option, with its escapes read if the user asked for that.
  std::string Read(const std::string& text) const;
  // Fails with kUsage if a stop string is empty or not UTF-8.
  Result<StopStrings> MakeStopStrings() const;
};

// --stop and -e,--escape. `escaped` names the other options in which escapes are read: "-p".
void AddTextOptions(CommandLine& command, TextOptions& options, const std::string& escaped);

}  // namespace cria::cli
