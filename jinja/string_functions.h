#pragma once

#include <cstdint>

#include "jinja/context.h"
#include "jinja/letters.h"
#include "jinja/text.h"
#include "jinja/value.h"

// Shared by filters and methods of strings. Positions are in bytes.
namespace cria::jinja {

enum class LetterCase : uint8_t {
  kUpper,
  kLower,
  kTitle,        // A capital after a character that has no case.
  kWords,        // Upper case after a space, a hyphen or an opening bracket.
  kCapitalized,  // A capital as the first character.
  kSwapped,      // Upper case for lower case, and lower for upper.
  kFolded,       // For comparing.
};

Value ChangeCase(Context& context, const Text& text, LetterCase letter_case);

// Removes the characters in `characters`, or white space if it is absent, from the ends.
Value Strip(Context& context, const Text& text, bool left, bool right, const Value& characters);

// Replaces the first `max_count` occurrences of `old` with `replacement`; all if it is negative.
Value Replace(Context& context, const Text& text, const Text& old, const Text& replacement,
              int64_t max_count);

// Splits at `separator`, or at white space if it is absent, at most `max_splits` times, counted
// from the end if `from_right`; without a limit if it is negative.
Value Split(Context& context, const Text& text, const Value& separator, int64_t max_splits,
            bool from_right);

Value SplitLines(Context& context, const Text& text, bool keeps_ends);

// Makes `text` `width` characters long with copies of the character `fill` on its left, on its
// right, or on both sides. Fails if `fill` is not one character.
Value Pad(Context& context, const Text& text, int64_t width, const Value& fill, bool left,
          bool right);

// Whether the bytes have characters that are in upper or lower case, and all of these are in this
// one.
bool HasOnlyCase(std::string_view bytes, CaseOf wanted);

// The strings of the items, with `separator` between them. They are escaped for HTML if
// `is_markup`.
Value Join(Context& context, std::span<const Value> items, const Text& separator, bool is_markup);

// Puts `prefix` before every line of `text`: before the first line only if `first`, and before
// empty lines only if `blank`. The lines of the result are separated by \n.
Value Indent(Context& context, const Text& text, const Text& prefix, bool first, bool blank);

}  // namespace cria::jinja
