#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "messages/message_reader.h"
#include "server/requests/fields.h"
#include "text/chat_template.h"

namespace cria::server {

// Reads a request's `messages`, of OpenAI's or ollama's form, as ReadMessageList does. The role
// developer is system.
std::vector<ChatMessage> ReadMessages(const Fields& request);

// A content: a string, null or a list of {"type": "text", "text": …}.
std::string ReadContent(const Fields& message, std::string_view name);

const MessageRules& RulesForMessages();

}  // namespace cria::server
