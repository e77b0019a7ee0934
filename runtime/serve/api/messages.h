#pragma once

#include <string>
#include <vector>

#include "serve/api/fields.h"
#include "text/chat_template.h"

namespace cria::serve {

// Reads a request's `messages`, of OpenAI's or ollama's form: the roles are system, developer
// (which is system), user, assistant and tool; a content is a string, null, or a list of texts,
// which are joined. Calls of tools become the field tool_calls as templates expect it, with
// arguments as an object. Images and other media are refused by name.
std::vector<ChatMessage> ReadMessages(const Fields& request);

// A content: a string, null or a list of {"type": "text", "text": …}.
std::string ReadContent(const Fields& message, std::string_view name);

}  // namespace cria::serve
