#include "grammar/pattern_characters.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "core/quotable.h"
#include "grammar/characters.h"

namespace cria::grammar {

CharacterSet PatternCharacters::Read() {
  const size_t position = cursor_.position();
  if (cursor_.Take(".")) return not_line_terminators_;
  CharacterSet set;
  if (cursor_.Take("[")) {
    ReadClass(position, &set);
    return set;
  }
  uint32_t character = 0;
  if (cursor_.Take("\\")) {
    if (ReadClassEscape(position, &set)) return set;
    character = ReadCharacterEscape(position);
  } else {
    character = cursor_.TakeCodePoint();
  }
  set.Add(character, character);
  return set;
}

// Reads a class behind its `[`.
void PatternCharacters::ReadClass(size_t position, CharacterSet* set) {
  const bool is_complement = cursor_.Take("^");
  while (!cursor_.Take("]")) {
    if (cursor_.AtEnd()) {
      cursor_.Fail(position, "'[' is not closed; a '[' of the text is written '\\['");
      return;
    }
    const char next = cursor_.Peek(1);
    if (cursor_.Peek() == '[' && (next == ':' || next == '.' || next == '=')) {
      cursor_.Fail(cursor_.position(),
                   "classes such as [:alpha:] are not supported; \\p{L} has all letters",
                   ErrorCode::kUnsupported);
      return;
    }
    const size_t range = cursor_.position();
    uint32_t first = 0;
    if (!ReadClassPart(set, &first)) continue;
    uint32_t last = first;
    // A `-` beside a class such as \d, or at the end, is a character.
    if (cursor_.rest().size() > 1 && cursor_.Peek(1) != ']' && cursor_.Take("-")) {
      if (!ReadClassPart(set, &last)) {
        set->Add('-', '-');
        last = first;
      }
      if (first > last) cursor_.Fail(range, "the range's first character comes after its last");
    }
    set->Add(first, last);
  }
  set->Normalize();
  if (is_complement) set->Complement();
}

// Reads one character of a class, or one class such as \d, which is added to `set`; then false.
bool PatternCharacters::ReadClassPart(CharacterSet* set, uint32_t* character) {
  const size_t position = cursor_.position();
  if (!cursor_.Take("\\")) {
    *character = cursor_.TakeCodePoint();
    return true;
  }
  if (cursor_.Take("b")) {
    *character = '\b';
    return true;
  }
  if (ReadClassEscape(position, set)) return false;
  *character = ReadCharacterEscape(position);
  return true;
}

// Reads the escape of a class behind its backslash; false if something else is there.
bool PatternCharacters::ReadClassEscape(size_t position, CharacterSet* set) {
  CharacterSet named;
  const char letter = cursor_.Peek();
  const bool is_complement = letter < 'a';
  switch (letter) {
    case 'd':
    case 'D':
      named = DigitCharacters();
      break;
    case 'w':
    case 'W':
      named = WordCharacters();
      break;
    case 's':
    case 'S':
      named = SpaceCharacters();
      break;
    case 'p':
    case 'P':
      cursor_.Skip(1);
      ReadProperty(position, is_complement, set);
      return true;
    default:
      return false;
  }
  cursor_.Skip(1);
  if (is_complement) named.Complement();
  set->Add(named);
  return true;
}

// Reads a property behind \p or \P.
void PatternCharacters::ReadProperty(size_t position, bool is_complement, CharacterSet* set) {
  if (!cursor_.Take("{") || !cursor_.rest().contains('}')) {
    cursor_.Fail(position, "a property is written \\p{…}, such as \\p{L} for letters");
    return;
  }
  const std::string_view name = cursor_.rest().substr(0, cursor_.rest().find('}'));
  CharacterSet named;
  if (!properties_.Add(name, &named)) {
    cursor_.Fail(position,
                 "the property '" + Quotable(name) +
                     "' is not supported: only general categories, such as \\p{L} or \\p{Lu}, "
                     "are, and Any, ASCII, ASCII_Hex_Digit and Assigned",
                 ErrorCode::kUnsupported);
    return;
  }
  cursor_.Skip(name.size() + 1);
  named.Normalize();
  if (is_complement) named.Complement();
  set->Add(named);
}

// Reads the escape of a character behind its backslash.
uint32_t PatternCharacters::ReadCharacterEscape(size_t position) {
  if (cursor_.AtEnd()) return cursor_.Fail(position, "the pattern ends behind a '\\'");
  const char c = cursor_.Peek();
  if (!IsAsciiLetter(c) && !IsDecimalDigit(c)) return cursor_.TakeCodePoint();
  cursor_.Skip(1);
  switch (c) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'v':
      return '\v';
    case 'f':
      return '\f';
    case 'r':
      return '\r';
    case '0':
      if (!IsDecimalDigit(cursor_.Peek())) return 0;
      return cursor_.Fail(position, "octal escapes are not supported; write \\xHH");
    case 'c':
      if (!IsAsciiLetter(cursor_.Peek())) {
        return cursor_.Fail(position, "\\c has no letter behind it");
      }
      return cursor_.TakeCodePoint() & 0x1F;
    case 'x':
      if (const auto value = cursor_.TakeHexDigits(2)) return *value;
      return cursor_.Fail(position, "\\x has no two hexadecimal digits behind it");
    case 'u':
      return ReadUnicodeEscape(position);
    default:
      break;
  }
  if (c == 'k' || IsDecimalDigit(c)) {
    return cursor_.Fail(position, "back references are not supported", ErrorCode::kUnsupported);
  }
  return cursor_.Fail(position, std::string("'\\") + c + "' is no escape of ECMA-262");
}

// Reads behind \u: HHHH, two of which may be the halves of a surrogate pair, or {…}.
uint32_t PatternCharacters::ReadUnicodeEscape(size_t position) {
  if (cursor_.Take("{")) {
    uint32_t value = 0;
    bool has_digits = false;
    while (const auto digit = cursor_.TakeHexDigits(1)) {
      value = std::min(value * 16 + *digit, kMaxCodePoint + 1);
      has_digits = true;
    }
    if (has_digits && value <= kMaxCodePoint && cursor_.Take("}")) return value;
    return cursor_.Fail(position, "\\u{…} has no code point up to 10FFFF between its braces");
  }
  const auto first = cursor_.TakeHexDigits(4);
  if (!first) return cursor_.Fail(position, "\\u has no four hexadecimal digits behind it");
  if (*first < 0xD800 || *first >= 0xDC00 || !cursor_.rest().starts_with("\\u")) return *first;
  TextCursor ahead = cursor_;
  ahead.Skip(2);
  const auto second = ahead.TakeHexDigits(4);
  if (!second || *second < 0xDC00 || *second >= 0xE000) return *first;
  cursor_ = ahead;
  return 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00);
}

}  // namespace cria::grammar
