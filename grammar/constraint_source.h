#pragma once

#include <cstdint>
#include <string_view>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

enum class ConstraintKind : uint8_t {
  kJsonSchema,
  kJsonSchemaAtBegin,  // Any text may follow what matches the schema.
  kJson,               // Any JSON value.
  kJsonObject,         // Any JSON object.
  kGbnf,
  kRegex,  // The whole text matches an ECMA-262 pattern.
};

// What a text must match.
struct ConstraintSource {
  ConstraintKind kind = ConstraintKind::kJson;
  std::string_view text;  // Empty for kJson and kJsonObject.
};

Result<Node> ReadConstraint(Expressions& expressions, const ConstraintSource& source);

}  // namespace cria::grammar
