#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "jinja/text.h"

namespace cria::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameBegin(char c) { return IsLetter(c) || c == '_'; }
bool IsSign(char c) { return c == '-' || c == '+'; }

size_t WhiteSpaceBytes(std::string_view text) {
  return StrippedRange(text, /*left=*/true, /*right=*/false).first;
}

// Longer symbols come before symbols that are their beginning.
constexpr auto kSymbols = std::to_array<std::string_view>(
    {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<",
     ">",  "=",  ".",  ",",  ":",  "|",  "(", ")", "[", "]", "{", "}"});

}  // namespace

Token Lexer::Take(TokenKind kind, size_t size) {
  const Token token = {kind, source_.substr(position_, size), position_};
  position_ += size;
  return token;
}

Token Lexer::Fail(std::string_view message) {
  context_.set_position(position_);
  context_.Fail({message});
  return {.position = position_};
}

Token Lexer::Next() {
  context_.Charge(1);
  while (!context_.failed()) {
    if (state_ == State::kPrint || state_ == State::kBlock) return NextInTag();
    const Token token = state_ == State::kText ? NextText() : NextTag();
    // Comments give no token, and neither does text that was stripped completely.
    if (token.kind != TokenKind::kText || !token.text.empty()) return token;
  }
  return {.position = position_};
}

// Reads text up to the next tag.
Token Lexer::NextText() {
  const size_t begin = position_;
  if (begin == source_.size()) return {.position = begin};
  size_t tag = begin;
  for (;; ++tag) {
    tag = source_.find('{', tag);
    if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
      return Take(TokenKind::kText, source_.size() - begin);
    }
    const char next = source_[tag + 1];
    if (next == '{' || next == '%' || next == '#') break;
  }
  Token token = Take(TokenKind::kText, tag - begin);
  token.text = StripBefore(token.text, tag);
  state_ = State::kTag;
  return token;
}

// The text before a tag after stripping.
std::string_view Lexer::StripBefore(std::string_view text, size_t tag) const {
  const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
  if (sign == '-') return text.substr(0, StrippedRange(text, false, true).second);
  if (sign == '+' || source_[tag + 1] == '{') return text;
  const size_t line = text.rfind('\n') + 1;  // 0 if there is none.
  const size_t begin = static_cast<size_t>(text.data() - source_.data());
  const bool at_line_begin = line > 0 || begin == 0 || source_[begin - 1] == '\n';
  const bool is_blank = WhiteSpaceBytes(text.substr(line)) == text.size() - line;
  return at_line_begin && is_blank ? text.substr(0, line) : text;
}

void Lexer::SkipAfterTag(char sign, bool trims_line_break) {
  if (sign == '-') {
    position_ += WhiteSpaceBytes(rest());
  } else if (sign != '+' && trims_line_break && rest().starts_with('\n')) {
    ++position_;
  }
}

// Called at the beginning of a tag.
Token Lexer::NextTag() {
  const char kind = source_[position_ + 1];
  if (kind == '#') {
    if (!SkipComment()) return Fail("a comment is not closed by '#}'");
    state_ = State::kText;
    return {TokenKind::kText, {}, position_};
  }
  size_t raw_bytes = 0;
  char sign = ' ';
  if (kind == '%' && IsRaw("raw", &raw_bytes, &sign) && sign != '+') {
    position_ += raw_bytes;
    SkipAfterTag(sign, false);
    return NextRaw();
  }
  const bool has_sign = position_ + 2 < source_.size() && IsSign(source_[position_ + 2]);
  state_ = kind == '{' ? State::kPrint : State::kBlock;
  open_brackets_ = 0;
  return Take(kind == '{' ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, has_sign ? 3 : 2);
}

bool Lexer::SkipComment() {
  size_t begin = position_ + 2;
  if (begin < source_.size() && IsSign(source_[begin])) ++begin;
  const size_t end = source_.find("#}", begin);
  if (end == std::string_view::npos) return false;
  const char sign = end > begin && IsSign(source_[end - 1]) ? source_[end - 1] : ' ';
  position_ = end + 2;
  SkipAfterTag(sign, true);
  return true;
}

// Whether a block with only this word begins here; sets its size and the sign at its end.
bool Lexer::IsRaw(std::string_view word, size_t* size, char* end_sign) const {
  std::string_view left = rest();
  if (!left.starts_with("{%")) return false;
  left.remove_prefix(2);
  if (!left.empty() && IsSign(left[0])) left.remove_prefix(1);
  left.remove_prefix(WhiteSpaceBytes(left));
  if (!left.starts_with(word)) return false;
  left.remove_prefix(word.size());
  left.remove_prefix(WhiteSpaceBytes(left));
  *end_sign = ' ';
  if (!left.empty() && IsSign(left[0])) {
    *end_sign = left[0];
    left.remove_prefix(1);
  }
  if (!left.starts_with("%}")) return false;
  *size = rest().size() - left.size() + 2;
  return true;
}

// Called after {% raw %}.
Token Lexer::NextRaw() {
  const size_t begin = position_;
  size_t size = 0;
  char sign = ' ';
  for (;; ++position_) {
    position_ = source_.find("{%", position_);
    if (position_ == std::string_view::npos) {
      position_ = begin;
      return Fail("'raw' is not closed by 'endraw'");
    }
    if (IsRaw("endraw", &size, &sign)) break;
  }
  const Token token = {TokenKind::kText,
                       StripBefore(source_.substr(begin, position_ - begin), position_), begin};
  position_ += size;
  SkipAfterTag(sign, true);
  state_ = State::kText;
  return token;
}

bool Lexer::IsEndOfTag(TokenKind* kind, size_t* size) const {
  if (open_brackets_ > 0) return false;
  const std::string_view left = rest();
  const bool is_print = state_ == State::kPrint;
  *kind = is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd;
  const size_t sign_bytes = left.starts_with('-') || (!is_print && left.starts_with('+')) ? 1 : 0;
  *size = sign_bytes + 2;
  return left.substr(sign_bytes).starts_with(is_print ? "}}" : "%}");
}

Token Lexer::NextInTag() {
  position_ += WhiteSpaceBytes(rest());
  if (position_ == source_.size()) return Fail("a tag is not closed");
  TokenKind end = TokenKind::kEnd;
  size_t size = 0;
  if (IsEndOfTag(&end, &size)) {
    const Token token = Take(end, size);
    SkipAfterTag(token.text[0], end == TokenKind::kBlockEnd);
    state_ = State::kText;
    return token;
  }
  const std::string_view left = rest();
  if (left[0] == '"' || left[0] == '\'') return NextString();
  if (IsDigit(left[0])) return NextNumber();
  if (IsNameBegin(left[0])) {
    size = 1;
    while (size < left.size() && (IsNameBegin(left[size]) || IsDigit(left[size]))) ++size;
    return Take(TokenKind::kName, size);
  }
  const auto* symbol = std::ranges::find_if(
      kSymbols, [&](std::string_view candidate) { return left.starts_with(candidate); });
  if (symbol == kSymbols.end()) return Fail("a tag has a character that is not allowed there");
  if (std::string_view("([{").contains(left[0])) ++open_brackets_;
  if (std::string_view(")]}").contains(left[0])) --open_brackets_;
  return Take(TokenKind::kSymbol, symbol->size());
}

Token Lexer::NextString() {
  const std::string_view left = rest();
  size_t end = 1;
  while (end < left.size() && left[end] != left[0]) end += left[end] == '\\' ? 2 : 1;
  if (end >= left.size()) return Fail("a string is not closed");
  return Take(TokenKind::kString, end + 1);
}

Token Lexer::NextNumber() {
  const std::string_view left = rest();
  const auto digits_from = [&](size_t at) {
    while (at < left.size() && (IsDigit(left[at]) || left[at] == '_')) ++at;
    return at;
  };
  if (left[0] == '0' && left.size() > 1 && std::string_view("xob").contains(ToLower(left[1]))) {
    // What is no digit of the base is refused when the number is read.
    size_t end = 2;
    while (end < left.size() && (IsNameBegin(left[end]) || IsDigit(left[end]))) ++end;
    return Take(TokenKind::kInt, end);
  }
  size_t size = digits_from(0);
  bool is_float = false;
  if (size + 1 < left.size() && left[size] == '.' && IsDigit(left[size + 1])) {
    size = digits_from(size + 1);
    is_float = true;
  }
  if (size < left.size() && ToLower(left[size]) == 'e') {
    const size_t digits = size + (size + 1 < left.size() && IsSign(left[size + 1]) ? 2 : 1);
    if (digits < left.size() && IsDigit(left[digits])) {
      size = digits_from(digits);
      is_float = true;
    }
  }
  return Take(is_float ? TokenKind::kFloat : TokenKind::kInt, size);
}

}  // namespace cria::jinja
