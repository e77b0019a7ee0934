#pragma once

#include <string>
#include <string_view>

#include "server/answers/answer_listener.h"
#include "server/requests/json_body.h"

namespace cria::server {

// The items that a response consists of, in OpenAI's form. `status` is "in_progress", "completed"
// or "incomplete".

// {"type": "output_text", "text": …} or {"type": "reasoning_text", "text": …}
Json ResponsesPart(AnswerPart part, std::string text);
// A message or a reasoning with these parts.
Json ResponsesTextItem(AnswerPart part, const std::string& id, const char* status, Json parts);
Json ResponsesCallItem(const std::string& id, const std::string& call_id, const std::string& name,
                       std::string arguments, const char* status);

Json ResponsesUsage(const AnswerEnd& end);

}  // namespace cria::server
