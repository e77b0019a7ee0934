#pragma once

#include <span>
#include <string>
#include <string_view>

#include "converter/tokenizer/chat_template_source.h"
#include "cria/error.h"

namespace cria {

// A built-in chat template, for checkpoints without one.
struct NamedChatTemplate {
  std::string_view name;
  std::string_view source;  // Jinja.
};

// chatml, llama2, llama3, and none, whose source is empty. They have no default system message and
// no date.
std::span<const NamedChatTemplate> NamedChatTemplates();

// The built-in template with this name; if there is none, the text of the file with this path.
Result<ChatTemplateSource> ReadChatTemplate(const std::string& name_or_path);

}  // namespace cria
