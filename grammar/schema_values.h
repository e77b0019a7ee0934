#pragma once

#include <cstdint>
#include <optional>

#include "grammar/number_ranges.h"
#include "grammar/schema_cases.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_report.h"
#include "jinja/value.h"

namespace cria::grammar {

// The bit of the value's type.
Types TypeOfValue(const jinja::Value& value);

// The exact decimal of a number; nothing for other values, and for numbers that are too long.
std::optional<Decimal> DecimalOfValue(const jinja::Value& value);

// The number that is the value of a keyword or one of its constants; fails if it is none, or too
// long.
std::optional<Decimal> NumberOf(const Item& item, const jinja::Value& value, SchemaReport& report);

// The value of a keyword such as maxLength; fails if it is no count. Counts from 2^32 - 1 on are
// kUnbounded, and fail if so many are demanded.
uint32_t CountOf(const Item& item, SchemaReport& report);

}  // namespace cria::grammar
