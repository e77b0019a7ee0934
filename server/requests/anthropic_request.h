#pragma once

#include "llm/engine.h"
#include "server/requests/answer_request.h"
#include "server/requests/fields.h"

namespace cria::server {

// The request of Anthropic's messages: https://docs.anthropic.com/en/api/messages. `max_tokens` may
// be missing where nothing is generated. Throws RequestError with the field's path.
ChatRequest ReadAnthropicMessages(const Engine& engine, const Fields& request, bool generates);

// Its messages alone, without the system prompt. A tool_result becomes a message of the role tool
// before what else its message says; tool_use and thinking become fields of the answer that has
// them.
std::vector<ChatMessage> ReadAnthropicTurns(const Fields& request);

}  // namespace cria::server
