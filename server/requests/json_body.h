#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/requests/json_bounds.h"

namespace cria::server {

// Objects keep the order in which they were written: it is that of a schema's properties and of
// what a chat template shows the model.
using Json = nlohmann::ordered_json;

// The JSON text within these bounds. Throws RequestError with the byte where it is not JSON; text
// that is not UTF-8 and halves of surrogate pairs are not. Written() writes its numbers with the
// digits that the text has: NumberOf() reads those that neither 64 bits nor a double keep.
Json ReadJsonText(std::string_view text, const std::string& what);
// As ReadJsonText; nothing if the text is not JSON.
std::optional<Json> TryReadJson(std::string_view text);
// The object of a request's body.
Json ReadBody(std::string_view body);

// The value of a number; nothing for other values.
std::optional<double> NumberOf(const Json& value);

// On one line. Bytes that are not UTF-8 are replaced.
std::string Written(const Json& value);

// Appends the text as it stands between the quotes of a string of JSON.
void AppendEscaped(std::string_view text, std::string& json);

}  // namespace cria::server
