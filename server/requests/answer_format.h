#pragma once

#include <string>

#include "server/requests/answer_request.h"
#include "server/requests/fields.h"

namespace cria::server {

// What a request says of the form of its answer: OpenAI's `response_format`, llama-server's
// `json_schema` and `grammar`, vLLM's `structured_outputs`, and `guided_json` and its siblings.
// More than one of them are refused.
AnswerShape ReadAnswerFormat(const Fields& request);
// Reads it from a request for a response, which has `text.format` instead of `response_format`.
AnswerShape ReadResponsesFormat(const Fields& request);

// The shape of answers that match a schema, which may also be JSON in a text, as vLLM has it.
// Throws RequestError that names `field`.
AnswerShape ShapeOfSchema(const Json& schema, std::string field);

}  // namespace cria::server
