#include "messages/calls_as_text.h"

#include <algorithm>
#include <utility>

#include "messages/json_text.h"

namespace cria {
namespace {

using Json = nlohmann::ordered_json;

void AddCallsToContent(ChatMessage& message, const MessageRules& rules) {
  if (message.fields.empty()) return;
  const std::string text = std::exchange(message.fields, {});
  const auto fields = rules.parse(text);
  if (!fields) {
    // Arguments that are nested deeper than the reader goes.
    message.content += text;
    return;
  }
  const auto calls = fields->find("tool_calls");
  if (calls == fields->end()) return;
  for (const Json& call : *calls) {
    if (!message.content.empty()) message.content += '\n';
    message.content += "<tool_call>\n" + WriteJson(call["function"]) + "\n</tool_call>";
  }
}

}  // namespace

bool HasCalls(const std::vector<ChatMessage>& messages) {
  return std::ranges::any_of(messages, [](const ChatMessage& message) {
    return message.role == "tool" || message.fields.contains("\"tool_calls\"");
  });
}

void WriteCallsAsText(std::vector<ChatMessage>& messages, const MessageRules& rules) {
  std::vector<ChatMessage> written;
  bool follows_result = false;
  for (ChatMessage& message : messages) {
    AddCallsToContent(message, rules);
    const bool is_result = message.role == "tool";
    if (is_result) {
      message.role = "user";
      message.content = "<tool_response>\n" + message.content + "\n</tool_response>";
    }
    // Many templates want users and assistants to take turns.
    if (is_result && follows_result) {
      written.back().content += "\n" + message.content;
    } else {
      written.push_back(std::move(message));
    }
    follows_result = is_result;
  }
  messages = std::move(written);
}

}  // namespace cria
