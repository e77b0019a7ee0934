#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// What Python's methods of strings know about characters.
namespace cria::jinja {

bool IsAlpha(char32_t c);      // str.isalpha()
bool IsDecimal(char32_t c);    // str.isdecimal()
bool IsAnyDigit(char32_t c);   // str.isdigit(): also superscripts and digits in circles.
bool IsNumeric(char32_t c);    // str.isnumeric(): also fractions and ideographs, below U+10000.
bool IsPrintable(char32_t c);  // str.isprintable(): whether repr() writes the character itself.
inline bool IsAlphanumeric(char32_t c) { return IsAlpha(c) || IsNumeric(c); }

enum class CaseOf : uint8_t { kNone, kLower, kUpper, kTitle };
CaseOf FindCase(char32_t c);

// Whether Python ignores the character when it looks for the letter before or after a sigma.
bool IsCaseIgnorable(char32_t c);

enum class CaseMapping : uint8_t { kLower, kUpper, kTitle, kFold };

struct MappedCharacters {
  // The conditional mapping of a sigma at the end of a word is left to the caller.
  static constexpr size_t kMax = 4;

  std::array<int32_t, kMax> characters;
  size_t size;
};

// The characters that `c` becomes: "SS" for ß in upper case.
MappedCharacters MapCase(char32_t c, CaseMapping mapping);

}  // namespace cria::jinja
