#pragma once

#include <cstdint>
#include <string_view>

#include "server/requests/json_body.h"

namespace cria::server {

// What a tool's schema says of the value of a parameter that is written without quotes.
enum class ParameterKind : uint8_t {
  kText,    // Always a text.
  kValue,   // Never a text.
  kEither,  // A value if it is JSON, otherwise a text.
};

// `root` is the whole document that has the schema: its references lead into that.
ParameterKind KindOf(const Json& schema, const Json& root);

// What a reference to a part of the document leads to; null: nothing is found.
const Json* FollowReference(const Json& reference, const Json& root);

// Whether an object's schema requires the property.
bool IsRequired(const Json& schema, std::string_view name);

}  // namespace cria::server
