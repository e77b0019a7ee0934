#pragma once

#include "llm/engine.h"
#include "server/requests/answer_request.h"
#include "server/requests/fields.h"

namespace cria::server {

// The request of OpenAI's chat completions, with llama-server's and vLLM's additions; without an
// engine, but for whether the model reasons.
ChatRequest ReadOpenAiChat(const Fields& request);
ChatRequest ReadOpenAiChat(const Engine& engine, const Fields& request);

// vLLM's `chat_template_kwargs`: variables of the template. The tools must have been read.
void ReadTemplateVariables(const Fields& request, ChatRequest& read);

// Throws RequestError if the last message, which `path` names, is not the beginning of an answer.
void CheckContinues(const ChatMessage& last, const std::string& path);

struct StreamFields {
  bool is_streamed = false;
  bool has_usage = false;  // At the end of the stream.
};
StreamFields ReadStreamFields(const Fields& request);

}  // namespace cria::server
