#pragma once

#include <cstdint>

#include "jinja/context.h"
#include "jinja/text.h"
#include "jinja/value.h"

// What filters and methods of strings share. Positions are bytes; letters are those of ASCII, and
// others stay as they are.
namespace cria::jinja {

enum class LetterCase : uint8_t {
  kUpper,
  kLower,
  kTitle,        // Letters behind what is no letter are upper.
  kWords,        // Letters behind a space, a hyphen or an opening bracket are upper.
  kCapitalized,  // The first letter is upper.
};

Value ChangeCase(Context& context, const Text& text, LetterCase letter_case);

// Without the characters in `characters`, or white space if that is absent, at its ends.
Value Strip(Context& context, const Text& text, bool left, bool right, const Value& characters);

// The first `most` places of `old` become `replacement`.
Value Replace(Context& context, const Text& text, const Text& old, const Text& replacement,
              int64_t most);

// Cuts at `separator`, or at white space if that is absent, at most `most` times; the last cuts of
// them if `from_right`.
Value Split(Context& context, const Text& text, const Value& separator, int64_t most,
            bool from_right);

Value SplitLines(Context& context, const Text& text, bool keeps_ends);

// The strings of the items, with `separator` between.
Value Join(Context& context, std::span<const Value> items, const Text& separator);

// `text` with `prefix` before every line, but for the first line or for blank ones unless asked.
Value Indent(Context& context, const Text& text, const Text& prefix, bool first, bool blank);

}  // namespace cria::jinja
