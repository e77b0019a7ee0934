#include "grammar/text_cursor.h"

#include <algorithm>

#include "core/utf8.h"

namespace cria::grammar {
namespace {

// -1 if it is no hexadecimal digit.
int HexDigitValue(char c) {
  if (IsDecimalDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool IsDecimalDigit(char c) { return c >= '0' && c <= '9'; }

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void TextCursor::Skip(size_t size_bytes) {
  position_ += std::min(size_bytes, text_.size() - position_);
}

bool TextCursor::Take(std::string_view text) {
  if (!rest().starts_with(text)) return false;
  position_ += text.size();
  return true;
}

uint32_t TextCursor::TakeCodePoint() {
  if (AtEnd()) return 0;
  const size_t size_bytes = FirstUtf8Character(rest()).size_bytes;
  const uint32_t code_point = CodePoint(rest(), size_bytes);
  position_ += size_bytes;
  return code_point;
}

std::optional<uint32_t> TextCursor::TakeCount() {
  if (!IsDecimalDigit(Peek())) return std::nullopt;
  uint32_t count = 0;
  for (; IsDecimalDigit(Peek()); ++position_) {
    count = std::min(count * 10 + static_cast<uint32_t>(Peek() - '0'), kMaxRepetitions + 1);
  }
  return count;
}

std::optional<uint32_t> TextCursor::TakeHexDigits(size_t num_digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < num_digits; ++i) {
    const int digit = HexDigitValue(Peek(i));
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  position_ += num_digits;
  return value;
}

uint32_t TextCursor::Fail(size_t position, std::string_view sentence, ErrorCode code) {
  if (!failure_) failure_ = {code, position, std::string(sentence)};
  position_ = text_.size();
  return 0;
}

}  // namespace cria::grammar
