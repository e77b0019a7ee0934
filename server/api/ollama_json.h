#pragma once

#include <chrono>
#include <string>

#include "server/api/answer_job.h"
#include "server/requests/fields.h"
#include "server/requests/json_body.h"

namespace cria::server {

// The time as ollama writes it: RFC 3339, in UTC.
std::string TimeText(std::chrono::system_clock::time_point time);

// What ollama's answers begin with: {"model", "created_at"}.
Json OllamaHead(const std::string& model_name);

// Answers a request that has nothing to answer. It asks to load the model, or with a `keep_alive`
// of 0 to free it; the only model of a server stays loaded.
void SendOllamaLoaded(Exchange& exchange, const Fields& request, const Json& content);

// ollama's `options`, `format`, and the fields that its two requests for answers share. If num_ctx
// is more than the context of this server, that is told once.
AnswerOptions ReadOllamaOptions(Exchange& exchange, const Fields& request);

// {"family", "format", …}
Json OllamaDetails(const std::string& family);

}  // namespace cria::server
