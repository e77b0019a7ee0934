#pragma once

#include <optional>
#include <string_view>

#include "server/requests/json_body.h"

namespace cria::server {

// Reads a value as JSON, Python or Gemma 4 writes it: true or True, null or None, texts in single
// or double quotes or between <|"|>, names of fields with or without quotes. Nothing if it is none,
// or is nested too deep.
std::optional<Json> ReadLiteral(std::string_view text);

// Reads name=value, …, as a call in Python has them, as an object.
std::optional<Json> ReadKeywords(std::string_view text);

// What quotes a text of Gemma 4.
inline constexpr std::string_view kGemmaQuote = "<|\"|>";

}  // namespace cria::server
