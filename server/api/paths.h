#pragma once

#include "server/api/api_state.h"

namespace cria::server {

// A path, whose last part may be '*', what it is for, and what answers it.
struct PathRoute {
  const char* method;
  const char* path;
  const char* what;  // server/README.md says this; paths with the same sentence share a row.
  PathHandler handle;
  ModelUse model = ModelUse::kNone;
  Response::Style style = Response::Style::kOpenAi;
};

// OpenAI's.
void HandleOpenAiChat(Exchange& exchange);
void HandleOpenAiResponses(Exchange& exchange);
void HandleOpenAiCompletions(Exchange& exchange);
void HandleOpenAiEmbeddings(Exchange& exchange);
void HandleOpenAiModels(Exchange& exchange);
void HandleOpenAiModel(Exchange& exchange);
// llama-server's, of a server with several models.
void HandleLoadModel(Exchange& exchange);
void HandleUnloadModel(Exchange& exchange);
// Anthropic's.
void HandleAnthropicMessages(Exchange& exchange);
void HandleAnthropicCount(Exchange& exchange);
// llama-server's.
void HandleLlamaCompletion(Exchange& exchange);
void HandleInfill(Exchange& exchange);
void HandleTokenize(Exchange& exchange);
void HandleRerank(Exchange& exchange);
void HandleDetokenize(Exchange& exchange);
void HandleApplyTemplate(Exchange& exchange);
void HandleHealth(Exchange& exchange);
void HandleProps(Exchange& exchange);
void HandleMetrics(Exchange& exchange);
void HandleSlots(Exchange& exchange);
void HandleSlotAction(Exchange& exchange);
// ollama's.
void HandleOllamaChat(Exchange& exchange);
void HandleOllamaGenerate(Exchange& exchange);
void HandleOllamaEmbed(Exchange& exchange);
void HandleOllamaEmbeddings(Exchange& exchange);
void HandleOllamaTags(Exchange& exchange);
void HandleOllamaShow(Exchange& exchange);
void HandleOllamaPs(Exchange& exchange);
void HandleOllamaVersion(Exchange& exchange);

}  // namespace cria::server
