#pragma once

#include <cstddef>
#include <string_view>

#include "cria/error.h"
#include "grammar/characters.h"
#include "grammar/expressions.h"

namespace cria::grammar {

inline constexpr size_t kMaxPatternBytes = 1 << 16;

// Reads a regular expression of ECMA-262 with the flag u, as JSON Schema has them. The result is an
// expression without rules for the texts in which the pattern is found: anywhere in the text, or as
// the whole text if `anchored`.
//
// Read are alternatives, groups of all kinds (without what they capture), quantifiers (greedy and
// lazy ones allow the same texts), classes, \d \w \s and their complements, \p{…} with general
// categories and the properties Any, ASCII, ASCII_Hex_Digit and Assigned, escapes of characters,
// the assertions ^ $ \b \B anywhere, and look-ahead outside of unlimited repetitions. In these, it
// is read only as (?:(?!…)x)* before the end of the text, where x is one character.
//
// Refused by name are look-behind, back references, modifiers and other properties. An error names
// the byte of the pattern, counted from 0. Where all other dialects agree on the meaning of a
// pattern that the flag u forbids, it is read: escapes such as \- and \@, and `{`, `}` and `]` that
// begin or end nothing.
Result<Node> ReadPattern(Expressions& expressions, std::string_view pattern,
                         CharacterEncoding encoding, bool anchored);

}  // namespace cria::grammar
