#pragma once

#include <string>

#include "server/requests/answer_request.h"
#include "server/requests/fields.h"
#include "text/chat_template.h"

namespace cria::server {

// Whether the model reasons before its answer, as each API says it. These set variables of the
// chat template. Reasoning is refused, under the name of the field that asks for it, if the
// template cannot turn it on.

// Sets whether the model reasons, as `field` asks.
void SetThinking(const ChatTemplate& chat_template, bool is_on, const std::string& field,
                 ChatRequest& request);
// `enable_thinking`, also in chat_template_kwargs, and OpenAI's `reasoning_effort`, also as
// reasoning.effort. chat_template_kwargs must have been read.
void ReadThinking(const ChatTemplate& chat_template, const Fields& fields, ChatRequest& request);
// How many tokens of reasoning there may be, by the names that llama-server, vLLM and others have
// for it; -1 is no limit.
void ReadReasoningBudget(const Fields& fields, AnswerOptions& options);
// ollama's `think`: true, false, "low", "medium", "high" or "max".
void ReadOllamaThink(const ChatTemplate& chat_template, const Fields& fields, ChatRequest& request);

}  // namespace cria::server
