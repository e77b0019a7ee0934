#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/expressions.h"

namespace cria::grammar {

// JSON as expressions. So that a text can be compared with other texts byte by byte, and so that a
// model cannot write without end, each value is written in one way:
//
// - Strings: a character stands for itself, but for `"` and `\`, which have a backslash before
//   them, and the controls below U+0020, which are \b \f \n \r \t or else \u00XX.
// - Numbers: digits without an exponent, at most kMaxWholeDigits before the point and
//   kMaxFractionDigits after it.
// - Space: behind `{`, `[`, `,` and `:`, and before `}` and `]`, there is nothing, or one space, or
//   a line end followed by at most kMaxIndent spaces; nowhere else, and nothing around the value.
class JsonText {
 public:
  static constexpr uint32_t kMaxWholeDigits = 20;
  static constexpr uint32_t kMaxFractionDigits = 20;
  static constexpr uint32_t kMaxIndent = 20;

  explicit JsonText(Expressions& expressions) : expressions_(expressions) {}

  Node Space();
  Node AnyValue();  // A rule, as values contain values.
  Node AnyObject();
  Node AnyArray();
  Node AnyString();
  Node AnyNumber();
  Node AnyCharacters();  // What is between the quotes of any string.

  // `content`, which is written as in a string, between quotes.
  Node Quoted(Node content);
  // The string whose value is `utf8`.
  Node String(std::string_view utf8);
  // A comma and what follows.
  Node Next(Node node);
  Node Member(Node name, Node value);
  // `items` between the brackets. Unless they are empty, they end with Space().
  Node Bracketed(char open, Node items, char close);

 private:
  // `item`, any number of times, separated by commas; maybe none.
  Node List(Node item);

  Expressions& expressions_;
  // Made when they are first asked for.
  Node space_ = Expressions::kNothing;
  Node value_ = Expressions::kNothing;
  Node object_ = Expressions::kNothing;
  Node array_ = Expressions::kNothing;
  Node characters_ = Expressions::kNothing;
};

}  // namespace cria::grammar
