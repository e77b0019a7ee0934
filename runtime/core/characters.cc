#include "core/characters.h"

#include "core/utf8.h"

namespace cria {

size_t CharacterBytes(std::string_view bytes) {
  const Utf8Character character = FirstUtf8Character(bytes);
  return character.state == Utf8State::kValid ? character.size_bytes : 1;
}

size_t CountCharacters(std::string_view bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes.size(); i += CharacterBytes(bytes.substr(i))) ++count;
  return count;
}

size_t CharacterOffset(std::string_view bytes, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < bytes.size(); --index) {
    offset += CharacterBytes(bytes.substr(offset));
  }
  return offset;
}

bool IsWhiteSpace(std::string_view bytes) {
  const char32_t c = CodeOf(bytes);
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

char32_t CodeOf(std::string_view bytes) {
  const Utf8Character character = FirstUtf8Character(bytes);
  return character.state == Utf8State::kValid ? CodePoint(bytes, character.size_bytes) : 0xFFFF;
}

}  // namespace cria
