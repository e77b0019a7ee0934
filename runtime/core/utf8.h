#pragma once

#include <array>
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
  // The length of the character; for an invalid one, the length of the longest beginning of a valid
  // character, or 1. (One U+FFFD replaces these bytes: Unicode Standard, section 3.9.)
  size_t size_bytes;
};

// The first character of `text`, which must not be empty. Overlong forms, surrogates and values
// above U+10FFFF are invalid.
Utf8Character FirstUtf8Character(std::string_view text);

// The code point of the valid character at the beginning of `text`.
char32_t CodePoint(std::string_view text, size_t size_bytes);

// The code point as UTF-8, in `buffer` or a constant. If it is no character, U+FFFD.
std::string_view EncodeUtf8(char32_t code_point, std::array<char, kMaxUtf8Bytes>* buffer);

// The number of bytes at the beginning of `text` that are valid characters.
size_t ValidUtf8Prefix(std::string_view text);

}  // namespace cria
