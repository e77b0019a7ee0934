#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria {

// A chat template of our own, for checkpoints that come without theirs.
struct NamedChatTemplate {
  std::string_view name;
  std::string_view source;  // Jinja.
};

// chatml, llama2, llama3, and none, whose source is empty. None of them has a default system
// message or a date.
std::span<const NamedChatTemplate> NamedChatTemplates();

// The source of the one with this name, or else the text of the file with it.
Result<std::string> ReadChatTemplate(const std::string& name_or_path);

}  // namespace cria
