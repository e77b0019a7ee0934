#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jinja/context.h"

namespace cria::jinja {

enum class TokenKind : uint8_t {
  kText,        // Text between tags, written unchanged.
  kPrintBegin,  // {{
  kPrintEnd,    // }}
  kBlockBegin,  // {%
  kBlockEnd,    // %}
  kName,
  kString,  // Including its quotes.
  kInt,
  kFloat,
  kSymbol,  // An operator or a bracket.
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  size_t position = 0;

  bool IsSymbol(std::string_view symbol) const {
    return kind == TokenKind::kSymbol && text == symbol;
  }
  bool IsName(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// Splits a template into tokens, with Hugging Face's settings for white space around tags:
// trim_blocks (a line break right after a block is not written) and lstrip_blocks (white space
// between the beginning of a line and a block is not written), unless a sign in the tag says
// otherwise.
class Lexer {
 public:
  // `source` must have no carriage returns, and no line break at its end that should not be
  // written.
  Lexer(Context& context, std::string_view source) : context_(context), source_(source) {}

  // The next token; kEnd at the end and after a failure.
  Token Next();

 private:
  enum class State : uint8_t { kText, kTag, kPrint, kBlock };

  std::string_view rest() const { return source_.substr(position_); }
  Token Take(TokenKind kind, size_t size);
  Token Fail(std::string_view message);
  Token NextText();
  Token NextTag();
  Token NextInTag();
  Token NextString();
  Token NextNumber();
  bool IsEndOfTag(TokenKind* kind, size_t* size) const;
  bool SkipComment();
  bool IsRaw(std::string_view word, size_t* size, char* end_sign) const;
  Token NextRaw();
  void SkipAfterTag(char sign, bool trims_line_break);
  std::string_view StripBefore(std::string_view text, size_t tag) const;

  Context& context_;
  std::string_view source_;
  size_t position_ = 0;
  State state_ = State::kText;
  int open_brackets_ = 0;  // In the tag; while a bracket is open, the tag does not end.
};

}  // namespace cria::jinja
