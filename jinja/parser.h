#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "jinja/context.h"
#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace cria::jinja {

// The names that a macro has without having parameters of these names, if it uses them.
inline constexpr std::array<std::string_view, 3> kGivenNames = {"caller", "varargs", "kwargs"};

// Parses a template into a tree, which lives as long as the context and the source.
class Parser {
 public:
  Parser(Context& context, std::string_view source);

  // Parses the whole template; null after a failure.
  const Node* Parse();

 private:
  using Children = Growing<const Node*>;

  // Statements.
  const Node* ParseBody(std::initializer_list<std::string_view> ends);
  const Node* ParseStatement();
  const Node* ParsePrint();
  const Node* ParseIf();
  const Node* ParseFor();
  const Node* ParseSet();
  const Node* ParseWith();
  // Also {% call %}, which gives a macro to the macro that it calls.
  const Node* ParseMacro(bool is_call);
  const Node* ParseFilterBlock();
  const Node* ParseBlock(std::string_view end);
  const Node* FinishSetBlock(size_t position, const Node* target, const Node* value,
                             std::string_view end);
  const Node* ParseTarget(bool with_attributes);
  const Node* ParseTargets(bool with_attributes);
  void EndBlock();
  // Skips the name of a statement without anything else, and the end of its tag.
  void SkipEnd();

  // Expressions, weakest first.
  const Node* ParseTuple();
  const Node* ParseExpression();
  // Also reads "and", which binds more tightly.
  const Node* ParseOr(bool is_and = false);
  const Node* ParseNot();
  const Node* ParseComparison();
  const Node* ParseOperation(int level);
  const Node* ParseUnary(bool with_filters);
  const Node* ParsePrimary();
  const Node* ParsePostfix(const Node* node);
  const Node* ParseFilters(const Node* node);
  const Node* ParseFilter(const Node* node);
  const Node* ParseTest(const Node* node);
  const Node* ParseSubscript(const Node* node);
  const Node* ParseDict();
  const Node* ParseCall(const Node* callee);
  void ParseArguments(Children* children);
  const Node* ParseString();
  const Node* ParseNumber();
  // Parses expressions with commas between, up to a closing bracket. Returns whether there was a
  // comma.
  bool ParseItems(std::string_view closing, Children* children);

  // Tokens.
  void Advance();
  bool Skip(std::string_view symbol);
  bool SkipName(std::string_view name);
  void Expect(std::string_view symbol);
  std::string_view ExpectName();
  bool IsNotIn() const;
  // Fails because the current token is not allowed here; returns null.
  const Node* Unexpected(std::string_view wanted);
  const Node* Fail(size_t position, std::initializer_list<std::string_view> parts);
  const Node* Fail(size_t position, const char* sentence);

  Node* Make(NodeKind kind, size_t position);
  Node* Make(NodeKind kind, size_t position, std::initializer_list<const Node*> children);
  Node* Make(NodeKind kind, size_t position, const Children& children);

  Context& context_;
  std::string_view source_;
  Lexer lexer_;
  Token token_;  // The current token.
  int depth_ = 0;
  int loops_ = 0;  // Number of open loops, for break and continue.
  // Number of uses so far of each of kGivenNames.
  std::array<int, kGivenNames.size()> given_uses_ = {};
};

}  // namespace cria::jinja
