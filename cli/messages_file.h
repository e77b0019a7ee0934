#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cria/error.h"
#include "text/chat_template.h"

namespace cria::cli {

// A file of messages can have this length: texts for contexts of about a million tokens.
inline constexpr size_t kMaxMessagesFileBytes = size_t{4} << 20;

// Reads the messages of a conversation from a JSON file; "-" is standard input. The file has a list
// of objects with `role` and `content`, or an object with this list as `messages`, as requests to
// chat servers have it. A content is a string, a list of {"type": "text", "text": …}, whose texts
// are joined, or null, which is "". Other fields are ignored. Errors name the file and the entry.
Result<std::vector<ChatMessage>> ReadMessagesFile(const std::string& path);

}  // namespace cria::cli
