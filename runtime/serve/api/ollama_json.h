#pragma once

#include <chrono>
#include <string>

#include "serve/api/answer_job.h"
#include "serve/api/fields.h"
#include "serve/api/json_body.h"

namespace cria::serve {

// The time as ollama writes it: RFC 3339, in UTC.
std::string TimeText(std::chrono::system_clock::time_point time);

// What ends an ollama answer: done, done_reason, counts and nanoseconds.
void AddOllamaEnd(Json& answer, const AnswerEnd& end, std::chrono::steady_clock::time_point begin);

// ollama's `options`, `format`, and the fields that its two requests for answers share. num_ctx
// must be at most the context of this server.
AnswerOptions ReadOllamaOptions(const ApiState& state, const Fields& request);

// {"family", "format", …}
Json OllamaDetails(const ApiState& state);

}  // namespace cria::serve
