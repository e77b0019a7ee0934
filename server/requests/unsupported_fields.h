#pragma once

#include "server/requests/fields.h"

namespace cria::server {

// Each of these refuses, by its name, a field of OpenAI's, llama-server's, vLLM's or ollama's
// requests that would change the answer and that nothing here implements, unless its value changes
// nothing. The README of this folder lists the fields that may be ignored.

// Fields of the steps that choose a token.
void RefuseUnsupportedSampling(const Fields& fields);
// Fields of OpenAI's requests, with the additions of llama-server and vLLM.
void RefuseUnsupportedInChat(const Fields& request);
void RefuseUnsupportedInResponses(const Fields& request);
void RefuseUnsupportedInCompletions(const Fields& request);
void RefuseUnsupportedInEmbeddings(const Fields& request);
// Fields of Jina's and Cohere's requests to rank documents.
void RefuseUnsupportedInRerank(const Fields& request);
// Fields of Anthropic's messages.
void RefuseUnsupportedInAnthropic(const Fields& request);
// Fields of ollama's requests.
void RefuseUnsupportedInOllamaChat(const Fields& request);
void RefuseUnsupportedInOllamaGenerate(const Fields& request);

}  // namespace cria::server
