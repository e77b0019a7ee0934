#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "serve/api/json_bounds.h"

namespace cria::serve {

// Objects keep the order in which they were written: it is that of a schema's properties and of
// what a chat template shows the model.
using Json = nlohmann::ordered_json;

// The JSON text within these bounds. Throws RequestError with the byte where it is not JSON; text
// that is not UTF-8 and halves of surrogate pairs are not.
Json ReadJsonText(std::string_view text, const std::string& what);
// The object of a request's body.
Json ReadBody(std::string_view body);

// On one line. Bytes that are not UTF-8 are replaced.
std::string Written(const Json& value);

}  // namespace cria::serve
