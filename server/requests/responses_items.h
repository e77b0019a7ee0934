#pragma once

#include <vector>

#include "server/requests/fields.h"
#include "text/chat_template.h"

namespace cria::server {

// The conversation of a request for a response: `instructions` and `input`, a text or a list of
// messages, reasoning, function calls and their outputs. What an answer consists of becomes one
// message of the assistant; instructions and system messages at the beginning become one, because
// many templates know no second one. Throws RequestError with the item's path.
std::vector<ChatMessage> ReadResponsesInput(const Fields& request);

}  // namespace cria::server
