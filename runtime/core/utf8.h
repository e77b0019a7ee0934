#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cria {

inline constexpr size_t kMaxUtf8Bytes = 4;
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8State : uint8_t {
  kValid,
  kIncomplete,  // The text ends inside a character that is valid so far.
  kInvalid,
};

struct Utf8Character {
  Utf8State state;
  // Bytes of the character; of an invalid one, the longest beginning that could have become a
  // character, or 1. (That is what one U+FFFD stands for, by the Unicode Standard, section 3.9.)
  size_t size_bytes;
};

// The character that `text`, which must not be empty, begins with. Overlong forms, surrogates and
// values above U+10FFFF are invalid.
Utf8Character FirstUtf8Character(std::string_view text);

// The value of the valid character that `text` begins with.
char32_t CodePoint(std::string_view text, size_t size_bytes);

// How many bytes of `text`, from its beginning, are valid characters.
size_t ValidUtf8Prefix(std::string_view text);

}  // namespace cria
