#pragma once

#include <vector>

#include "messages/message_reader.h"

namespace cria {

// Whether there are calls of tools or results of them.
bool HasCalls(const std::vector<ChatMessage>& messages);

// For templates that know no tools: calls become text of the assistant, as models of the Hermes
// kind write them, and results become messages of the user, one for several results in a row.
void WriteCallsAsText(std::vector<ChatMessage>& messages, const MessageRules& rules);

}  // namespace cria
