#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/input/json_document.h"
#include "cria/error.h"
#include "text/chat_template.h"

namespace cria::cli {

// A file of messages can have this length: texts for contexts of about a million tokens.
inline constexpr size_t kMaxMessagesFileBytes = size_t{4} << 20;

// Reads the messages of a conversation from a JSON file; "-" is standard input. The file has a list
// of messages, or an object with this list as `messages`, as requests to chat servers have it; they
// are read as those are (messages/message_reader.h), but may have any role. If the template knows
// no tools, calls and their results become text. Fields that are not known are left out, which a
// line on standard error says. Errors name the file and the entry.
Result<std::vector<ChatMessage>> ReadMessagesFile(const std::string& path,
                                                  const ChatTemplate& chat_template);

// Reads a list of messages in a document. Adds fields that are not known to `unknown_fields`.
Result<std::vector<ChatMessage>> ReadMessages(JsonDocument& document, const jinja::Value& list,
                                              const std::string& where,
                                              const ChatTemplate& chat_template,
                                              std::vector<std::string>& unknown_fields);

}  // namespace cria::cli
