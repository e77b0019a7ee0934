#pragma once

#include <cstddef>
#include <string_view>

// Characters of texts that need not be UTF-8: a byte that is not is a character, too.
namespace cria {

// The length of the first character of `bytes`, which must not be empty.
size_t CharacterBytes(std::string_view bytes);
size_t CountCharacters(std::string_view bytes);
// The offset of the character with this index, or the end.
size_t CharacterOffset(std::string_view bytes, size_t index);

// Whether Python's str.isspace() is true for the first character of `bytes`.
bool IsWhiteSpace(std::string_view bytes);

// The code point of the first character of `bytes`, of CharacterBytes(bytes) bytes; U+FFFF, which
// is no character, for a byte that is not UTF-8.
char32_t CodeOf(std::string_view bytes);

}  // namespace cria
