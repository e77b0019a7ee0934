#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

// An expression with its memory, to ask which texts match.
class ExpressionTexts {
 public:
  explicit ExpressionTexts(size_t memory_bytes = size_t{8} << 20);

  Expressions& expressions() { return expressions_; }
  // Called once, with what a reader returned, before Matches.
  Status Begin(Node start);
  // Steps through the text byte by byte. An error if the expression is too complex.
  Result<bool> TryToMatch(std::string_view text);
  // Then the test fails.
  bool Matches(std::string_view text);

 private:
  std::vector<uint64_t> memory_;
  Expressions expressions_;
  Node start_ = Expressions::kNothing;
};

// The character as UTF-8, surrogates, too.
std::string Utf8Of(uint32_t code_point);
// As a JSON string has it, without the quotation marks.
std::string JsonOf(std::string_view utf8);

}  // namespace cria::grammar
