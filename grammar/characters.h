#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "grammar/expressions.h"

namespace cria::grammar {

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// How a character is written.
enum class CharacterEncoding : uint8_t {
  kUtf8,
  // As in a JSON string, each in one way: as itself, but for `"` and `\`, which have a backslash
  // before them, and the controls below U+0020, which are \b \f \n \r \t or else \u00XX. Only the
  // hexadecimal digits may be of either case.
  kJsonString,
};

// One character of the ranges, which are sorted and disjoint. Surrogates are left out.
Node Characters(Expressions& expressions, std::span<const CodePointRange> ranges,
                CharacterEncoding encoding);

// One character, whichever it is.
Node AnyCharacter(Expressions& expressions, CharacterEncoding encoding);

// The characters of `utf8`, which must be valid, in this order.
Node Literal(Expressions& expressions, std::string_view utf8, CharacterEncoding encoding);

}  // namespace cria::grammar
