#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcatenate,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};

// a OPERATOR b as in Python, with whole numbers of 64 bits.
Value ApplyOperator(Context& context, Operator op, const Value& a, const Value& b);

// -value, or +value.
Value ApplySign(Context& context, bool is_negative, const Value& value);

// a < b, for numbers, strings, and lists of them.
bool Less(Context& context, const Value& a, const Value& b, int depth = 0);

// Sorts entries by their keys, ascending or descending; the order of equal ones does not change.
void SortEntries(Context& context, std::span<Entry> entries, bool reverse);

// container[index]; undefined if there is no such item.
Value GetItem(Context& context, const Value& container, const Value& index);
// value.name
Value GetAttribute(Context& context, const Value& value, std::string_view name);

// container[start:stop:step]; None or undefined: to the end.
Value GetSlice(Context& context, const Value& container, const Value& start, const Value& stop,
               const Value& step);

}  // namespace cria::jinja
