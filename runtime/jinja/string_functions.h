#pragma once

#include <cstdint>

#include "jinja/context.h"
#include "jinja/text.h"
#include "jinja/value.h"

// Shared by filters and methods of strings. Positions are in bytes; only ASCII letters change their
// case.
namespace cria::jinja {

enum class LetterCase : uint8_t {
  kUpper,
  kLower,
  kTitle,        // Upper case after a character that is not a letter.
  kWords,        // Upper case after a space, a hyphen or an opening bracket.
  kCapitalized,  // Upper case for the first letter.
};

Value ChangeCase(Context& context, const Text& text, LetterCase letter_case);

// Removes the characters in `characters`, or white space if it is absent, from the ends.
Value Strip(Context& context, const Text& text, bool left, bool right, const Value& characters);

// Replaces the first `most` occurrences of `old` with `replacement`.
Value Replace(Context& context, const Text& text, const Text& old, const Text& replacement,
              int64_t most);

// Splits at `separator`, or at white space if it is absent, at most `most` times, counted from the
// end if `from_right`.
Value Split(Context& context, const Text& text, const Value& separator, int64_t most,
            bool from_right);

Value SplitLines(Context& context, const Text& text, bool keeps_ends);

// The strings of the items, with `separator` between them.
Value Join(Context& context, std::span<const Value> items, const Text& separator);

// Puts `prefix` before every line of `text`: before the first line only if `first`, and before
// blank lines only if `blank`.
Value Indent(Context& context, const Text& text, const Text& prefix, bool first, bool blank);

}  // namespace cria::jinja
