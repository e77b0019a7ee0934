#pragma once

#include <cstddef>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace cria {

// Why a message in JSON cannot be read.
struct MessageProblem {
  std::string field;      // "messages[2].role"
  std::string problem;    // Continues the sentence that begins with the field: "is missing".
  std::string code = "";  // For programs: that the value is none of what is supported; "": wrong.
};

// Whether the role is system, developer, user, assistant or tool.
bool IsUsualRole(std::string_view role);

// What differs between those who read messages.
struct MessageRules {
  // The value of a JSON text; nothing if it is none.
  std::optional<nlohmann::ordered_json> (*parse)(const std::string& text);
  // Roles besides system, developer, user, assistant and tool, which a template may know.
  bool allows_other_roles = false;
  // A conversation may have so many messages, and as many calls in all of them.
  size_t max_messages = 8192;
  // The arguments of all calls together may have so many values.
  size_t max_argument_values = size_t{1} << 20;
};

struct ReadConversation {
  std::vector<ChatMessage> messages;
  // The fields that have a value and no meaning here: "messages[2].weight".
  std::vector<std::string> unknown_fields;
};

// Reads a list of messages as OpenAI's and ollama's requests have it. A content is a string, null,
// or a list of texts, which are joined. What templates know of the other fields becomes the field
// of a ChatMessage, in the form that templates expect: tool_calls (with arguments as an object),
// tool_call_id, name and reasoning_content. Images and other media are refused by name.
std::expected<ReadConversation, MessageProblem> ReadMessageList(const nlohmann::ordered_json& list,
                                                                const MessageRules& rules);

// Reads a content, which `path` names; null is "".
std::expected<std::string, MessageProblem> ReadMessageContent(const nlohmann::ordered_json& content,
                                                              const std::string& path);

}  // namespace cria
