#pragma once

#include <cstddef>
#include <string_view>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

inline constexpr size_t kMaxSchemaBytes = size_t{1} << 18;

// The values that match a JSON Schema of draft 2020-12, written as JsonText says. Properties are
// written in the order in which the schema names them, then those that it does not name.
//
// Understood are, besides what only describes: type, enum, const; minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, multipleOf (1, 2 and 5 times a power of ten); pattern,
// minLength, maxLength, format (date, time, date-time, duration, uuid, ipv4, ipv6, email, uri and
// json-pointer; others are annotations); items, prefixItems, minItems, maxItems, contains,
// minContains, maxContains; properties, required, additionalProperties, patternProperties,
// propertyNames, minProperties, maxProperties, dependentRequired, dependentSchemas; allOf, anyOf,
// oneOf, not, if, then, else; $defs, $id, $anchor and $ref to anything in the document. Other
// keywords that decide what is valid are refused by name, also those that later drafts replaced; an
// `items` that is a list is one of these. Numbers are exact.
//
// An error's sentence begins with the place in the schema: a JSON pointer after `#`.
Result<Node> ReadJsonSchema(Expressions& expressions, std::string_view json);

// Any JSON value, and any object.
Result<Node> AnyJson(Expressions& expressions);
Result<Node> AnyJsonObject(Expressions& expressions);

}  // namespace cria::grammar
