#pragma once

#include <initializer_list>
#include <string_view>

#include "jinja/context.h"
#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace cria::jinja {

// Makes a tree of a template, which lives as long as the context and the source.
class Parser {
 public:
  Parser(Context& context, std::string_view source);

  // The whole template, or a failure.
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
  const Node* ParseMacro();
  const Node* ParseTarget(bool with_attributes);
  const Node* ParseTargets(bool with_attributes);
  void EndBlock();

  // Expressions, weakest first.
  const Node* ParseTuple();
  const Node* ParseExpression();
  const Node* ParseOr();
  const Node* ParseAnd();
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
  // Expressions with commas between, up to a closing bracket. Tells whether a comma was there.
  bool ParseItems(std::string_view closing, Children* children);

  // Tokens.
  void Advance();
  bool Skip(std::string_view symbol);
  bool SkipName(std::string_view name);
  void Expect(std::string_view symbol);
  std::string_view ExpectName();
  bool IsNotIn() const;
  // That the token at hand does not belong here; null.
  const Node* Unexpected(std::string_view wanted);
  const Node* Fail(size_t position, std::initializer_list<std::string_view> parts);

  Node* Make(NodeKind kind, size_t position);
  Node* Make(NodeKind kind, size_t position, std::initializer_list<const Node*> children);

  Context& context_;
  std::string_view source_;
  Lexer lexer_;
  Token token_;  // The one at hand.
  int depth_ = 0;
  int loops_ = 0;  // That are open, for break and continue.
};

}  // namespace cria::jinja
