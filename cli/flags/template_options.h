#pragma once

#include <cstdint>
#include <string>

#include "cli/flags/command_line.h"

namespace cria::cli {

// Whether a reasoning model thinks before it answers.
enum class Thinking : uint8_t {
  kDefault,  // As the model's template decides.
  kOff,
  kOn,
  kHide,  // It thinks, but its thoughts are not printed.
};

struct TemplateOptions {
  std::string variables;  // A JSON object, or "".
  Thinking thinking = Thinking::kDefault;
};

// --chat-template-kwargs and --think.
void AddTemplateOptions(CommandLine& command, TemplateOptions& options);

}  // namespace cria::cli
