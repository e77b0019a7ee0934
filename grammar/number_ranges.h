#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/expressions.h"

namespace cria::grammar {

// A number as it is written: exact, where a double is not.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";  // Digits, without zeros before them.
  std::string fraction;     // Digits, without zeros behind them; empty for a whole number.

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  std::string Text() const;
};

// A decimal may have this many digits before the point, and as many after it.
inline constexpr int64_t kMaxDecimalDigits = 400;

// The decimal of a whole number.
Decimal WholeDecimal(int64_t number);
// The value of a number in JSON; nothing if it has more digits than kMaxDecimalDigits.
std::optional<Decimal> ReadDecimal(std::string_view number);

// Less than 0 if `a` is less than `b`, 0 if they are equal.
int Compare(const Decimal& a, const Decimal& b);

// An end of a range, or none.
struct Bound {
  std::optional<Decimal> at;
  bool is_exclusive = false;
};

enum class NumberKind : uint8_t { kAny, kWhole, kFractional };

// The numbers from `lower` to `upper` of this kind, as JsonText writes them. Whole numbers have no
// point if only these are asked for; 1.0 is none of the fractional ones. Within bounds, zero has no
// sign. May be an expression that matches nothing.
Node NumberInRange(Expressions& expressions, const Bound& lower, const Bound& upper,
                   NumberKind kind);

// All ways in which the number can be written, with zeros behind it.
Node SpellingsOf(Expressions& expressions, const Decimal& number);

// The multiples of 10^exponent, times `digit`, which is 1, 2 or 5. As an expression for any number
// whose digits allow it: whole numbers end with such digits, or fractions have no more digits.
Node MultiplesOf(Expressions& expressions, uint8_t digit, int exponent);

}  // namespace cria::grammar
