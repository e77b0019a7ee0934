#pragma once

#include <cstdint>

#include "server/api/json_body.h"

namespace cria::server {

// What a tool's schema says of the value of a parameter that is written without quotes.
enum class ParameterKind : uint8_t {
  kText,    // Always a text.
  kValue,   // Never a text.
  kEither,  // A value if it is JSON, otherwise a text.
};

// `root` is what the schema is a part of, to which its references lead.
ParameterKind KindOf(const Json& schema, const Json& root);

// What a reference to a part of the document leads to; null: nothing is found.
const Json* FollowReference(const Json& reference, const Json& root);

}  // namespace cria::server
