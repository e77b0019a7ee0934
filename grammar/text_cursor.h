#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria::grammar {

// How often a part of a pattern or of a grammar may be repeated, if not without limit.
inline constexpr uint32_t kMaxRepetitions = 1'000'000;

bool IsDecimalDigit(char c);
bool IsAsciiLetter(char c);

// A place in a text that is being read, which is valid UTF-8. After the first failure, the place is
// the end, so that every loop of a reader ends; what it has read until then is not used any more.
class TextCursor {
 public:
  struct Failure {
    ErrorCode code;
    size_t position;
    std::string sentence;
  };

  explicit TextCursor(std::string_view text) : text_(text) {}

  bool AtEnd() const { return position_ == text_.size(); }
  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }
  // 0 behind the end, which is like a zero byte in the text: nothing is compared with it.
  char Peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  // At most up to the end.
  void Skip(size_t size_bytes);
  // Skips this text if it comes next.
  bool Take(std::string_view text);
  // 0 at the end.
  uint32_t TakeCodePoint();
  // A decimal number; if it is above kMaxRepetitions, kMaxRepetitions + 1. Nothing if no digit
  // comes next.
  std::optional<uint32_t> TakeCount();
  // The value of so many hexadecimal digits, at most 8. Nothing if there are fewer.
  std::optional<uint32_t> TakeHexDigits(size_t num_digits);

  // The first failure stays. Returns 0, for readers that return a number.
  uint32_t Fail(size_t position, std::string_view sentence, ErrorCode code = ErrorCode::kUsage);
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  std::string_view text_;
  size_t position_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace cria::grammar
