#include "grammar/expression_texts.h"

#include <gtest/gtest.h>

#include "core/format.h"

namespace cria::grammar {

ExpressionTexts::ExpressionTexts(size_t memory_bytes)
    : memory_(memory_bytes / sizeof(uint64_t)),
      expressions_(std::as_writable_bytes(std::span(memory_))) {}

Status ExpressionTexts::Begin(Node start) {
  CRIA_RETURN_IF_ERROR(expressions_.Finish(start));
  start_ = start;
  return {};
}

Result<bool> ExpressionTexts::TryToMatch(std::string_view text) {
  Node node = start_;
  for (const char byte : text) {
    node = expressions_.Derive(node, static_cast<uint8_t>(byte));
    if (node == Expressions::kNothing) break;
  }
  CRIA_RETURN_IF_ERROR(expressions_.status());
  return expressions_.MatchesEmpty(node);
}

bool ExpressionTexts::Matches(std::string_view text) {
  const auto matches = TryToMatch(text);
  if (!matches) ADD_FAILURE() << matches.error().message();
  return matches && *matches;
}

std::string Utf8Of(uint32_t code_point) {
  const auto last = [code_point](int shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  const auto first = [code_point](int shift, uint32_t mark) {
    return static_cast<char>(mark | (code_point >> shift));
  };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {first(6, 0xC0), last(0)};
  if (code_point < 0x10000) return {first(12, 0xE0), last(6), last(0)};
  return {first(18, 0xF0), last(12), last(6), last(0)};
}

std::string JsonOf(std::string_view utf8) {
  std::string json;
  for (const char c : utf8) {
    switch (c) {
      case '"':
      case '\\':
        json += {'\\', c};
        break;
      case '\b':
        json += "\\b";
        break;
      case '\f':
        json += "\\f";
        break;
      case '\n':
        json += "\\n";
        break;
      case '\r':
        json += "\\r";
        break;
      case '\t':
        json += "\\t";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20) {
          json += Format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          json += c;
        }
    }
  }
  return json;
}

}  // namespace cria::grammar
