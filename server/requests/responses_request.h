#pragma once

#include "llm/engine.h"
#include "server/requests/answer_request.h"
#include "server/requests/fields.h"

namespace cria::server {

// The request of OpenAI's responses: https://platform.openai.com/docs/api-reference/responses, with
// the additions of llama-server and vLLM that chat completions have.
struct ResponsesRequest {
  ChatRequest chat;
  bool is_streamed = false;
  // The members of the answer that repeat the request. A value that takes more than
  // kMaxRepeatedBytes is left out: it would be in memory as long as the answer.
  Json repeated = Json::object();
};
// The bytes of texts and names; every value that is no text counts as eight.
inline constexpr size_t kMaxRepeatedBytes = 4096;

// Reads a request for a response. Throws RequestError. Whether the model reasons is only read if
// there is an engine, whose chat template says how.
ResponsesRequest ReadResponses(const Fields& request);
ResponsesRequest ReadResponses(const Engine& engine, const Fields& request);

}  // namespace cria::server
