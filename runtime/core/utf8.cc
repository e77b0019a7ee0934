#include "core/utf8.h"

namespace cria {
namespace {

struct ByteRange {
  uint8_t low;
  uint8_t high;
};

// The allowed values of the second byte for each first byte (the Unicode Standard, table 3-7).
ByteRange SecondByteRange(uint8_t first) {
  switch (first) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

// 0 if no character begins with this byte.
size_t SizeByFirstByte(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  if (first < 0xF5) return 4;
  return 0;
}

}  // namespace

Utf8Character FirstUtf8Character(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t size_bytes = SizeByFirstByte(first);
  if (size_bytes == 0) return {Utf8State::kInvalid, 1};
  ByteRange range = SecondByteRange(first);
  for (size_t i = 1; i < size_bytes; ++i) {
    if (i == text.size()) return {Utf8State::kIncomplete, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < range.low || byte > range.high) return {Utf8State::kInvalid, i};
    range = {0x80, 0xBF};
  }
  return {Utf8State::kValid, size_bytes};
}

char32_t CodePoint(std::string_view text, size_t size_bytes) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (size_bytes == 1) return first;
  char32_t code_point = first & (0x7Fu >> size_bytes);
  for (size_t i = 1; i < size_bytes; ++i) {
    code_point = (code_point << 6) | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  }
  return code_point;
}

std::string_view EncodeUtf8(char32_t code_point, std::array<char, kMaxUtf8Bytes>* buffer) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000))
    return kReplacementCharacter;
  if (code_point < 0x80) {
    (*buffer)[0] = static_cast<char>(code_point);
    return {buffer->data(), 1};
  }
  const size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; --i) {
    (*buffer)[i] = static_cast<char>(0x80 | (code_point & 0x3F));
    code_point >>= 6;
  }
  constexpr std::array<unsigned, 5> kFirstByte = {0, 0, 0xC0, 0xE0, 0xF0};
  (*buffer)[0] = static_cast<char>(kFirstByte[size] | code_point);
  return {buffer->data(), size};
}

size_t ValidUtf8Prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const Utf8Character character = FirstUtf8Character(text.substr(position));
    if (character.state != Utf8State::kValid) break;
    position += character.size_bytes;
  }
  return position;
}

}  // namespace cria
