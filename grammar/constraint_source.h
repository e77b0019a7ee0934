#pragma once

#include <cstddef>
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

// The most memory that ReadConstraint takes besides that of the expressions: for the values of a
// schema, its index, the alternatives under way, and one pattern; or for the rules of a grammar.
inline constexpr size_t kMaxReadingBytes = size_t{8} << 20;

Result<Node> ReadConstraint(Expressions& expressions, const ConstraintSource& source);

}  // namespace cria::grammar
