// The part of Parser that reads expressions, with Jinja's precedences.

#include <array>

#include "jinja/literals.h"
#include "jinja/natives.h"
#include "jinja/parser.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

struct Spelling {
  std::string_view symbol;
  Operator op;
};

constexpr auto kComparisons = std::to_array<Spelling>({{"==", Operator::kEqual},
                                                       {"!=", Operator::kNotEqual},
                                                       {"<", Operator::kLess},
                                                       {"<=", Operator::kLessOrEqual},
                                                       {">", Operator::kGreater},
                                                       {">=", Operator::kGreaterOrEqual}});

// Operators between two values; a higher level binds more tightly.
struct LeveledSpelling {
  std::string_view symbol;
  Operator op;
  int level;
};

constexpr int kHighestLevel = 3;
constexpr auto kOperators = std::to_array<LeveledSpelling>({{"+", Operator::kAdd, 0},
                                                            {"-", Operator::kSubtract, 0},
                                                            {"~", Operator::kConcatenate, 1},
                                                            {"*", Operator::kMultiply, 2},
                                                            {"/", Operator::kDivide, 2},
                                                            {"//", Operator::kFloorDivide, 2},
                                                            {"%", Operator::kModulo, 2},
                                                            {"**", Operator::kPower, 3}});

// What Jinja has and this runtime does not: refused when a template is parsed, so that a model's
// template does not fail later, in a branch that is rarely taken.
constexpr char kMissingFilters[] = " filesizeformat pprint random striptags urlize xmlattr ";
constexpr char kMissingMethods[] =
    " as_integer_ratio bit_length encode fromkeys is_integer isidentifier maketrans "
    "striptags translate unescape ";
constexpr std::string_view kRandomFunction = "lipsum";
constexpr std::string_view kRandomFilter = "random";
// With it, the same messages would not make the same prompt.
constexpr std::string_view kIsRandom = ", because its result is random";

}  // namespace

// One expression, or several with commas between.
const Node* Parser::ParseTuple() {
  const size_t position = token_.position;
  const Node* first = ParseExpression();
  if (!token_.IsSymbol(",")) return first;
  Children items(context_);
  items.Add(first);
  while (!context_.failed() && Skip(",")) {
    if (token_.kind == TokenKind::kPrintEnd || token_.kind == TokenKind::kBlockEnd) break;
    items.Add(ParseExpression());
  }
  return Make(NodeKind::kTuple, position, items);
}

const Node* Parser::ParseExpression() {
  const int depth = depth_;
  const Node* node = nullptr;
  const size_t position = token_.position;
  if (++depth_ > kMaxDepth) {
    Fail(position, "expressions are nested too deeply");
  } else {
    node = ParseOr();
    while (!context_.failed() && SkipName("if")) {
      const Node* condition = ParseOr();
      const Node* otherwise = SkipName("else") ? ParseExpression() : nullptr;
      node = Make(NodeKind::kConditional, position, {condition, node, otherwise});
    }
  }
  depth_ = depth;
  return node;
}

const Node* Parser::ParseOr(bool is_and) {
  const auto parse_part = [&] { return is_and ? ParseNot() : ParseOr(/*is_and=*/true); };
  const Node* node = parse_part();
  while (token_.IsName(is_and ? "and" : "or")) {
    const size_t position = token_.position;
    Advance();
    node = Make(is_and ? NodeKind::kAnd : NodeKind::kOr, position, {node, parse_part()});
  }
  return node;
}

const Node* Parser::ParseNot() {
  const size_t position = token_.position;
  int negations = 0;
  while (SkipName("not")) ++negations;
  const Node* node = ParseComparison();
  // Two negations still give a bool.
  if (negations > 0) node = Make(NodeKind::kNot, position, {node});
  if (negations > 0 && negations % 2 == 0) node = Make(NodeKind::kNot, position, {node});
  return node;
}

// Called at "not": whether "in" comes next.
bool Parser::IsNotIn() const {
  Lexer ahead = lexer_;
  return token_.IsName("not") && ahead.Next().IsName("in");
}

const Node* Parser::ParseComparison() {
  const size_t position = token_.position;
  const Node* first = ParseOperation(0);
  Children children(context_);
  children.Add(first);
  while (!context_.failed()) {
    const size_t operator_position = token_.position;
    const Spelling* found = nullptr;
    for (const Spelling& comparison : kComparisons) {
      if (token_.IsSymbol(comparison.symbol)) found = &comparison;
    }
    Operator op = Operator::kIn;
    if (found != nullptr) {
      op = found->op;
    } else if (IsNotIn()) {
      op = Operator::kNotIn;
      Advance();
    } else if (!token_.IsName("in")) {
      break;
    }
    Advance();
    Node* operand = Make(NodeKind::kOperand, operator_position, {ParseOperation(0)});
    operand->op = op;
    children.Add(operand);
  }
  if (children.size() < 2) return first;
  return Make(NodeKind::kComparison, position, children);
}

const Node* Parser::ParseOperation(int level) {
  if (level > kHighestLevel) return ParseUnary(/*with_filters=*/true);
  const Node* node = ParseOperation(level + 1);
  while (!context_.failed()) {
    const LeveledSpelling* found = nullptr;
    for (const LeveledSpelling& candidate : kOperators) {
      if (candidate.level == level && token_.IsSymbol(candidate.symbol)) found = &candidate;
    }
    if (found == nullptr) break;
    const size_t position = token_.position;
    Advance();
    Node* operation = Make(NodeKind::kOperation, position, {node, ParseOperation(level + 1)});
    operation->op = found->op;
    node = operation;
  }
  return node;
}

const Node* Parser::ParseUnary(bool with_filters) {
  const size_t position = token_.position;
  const Node* node = nullptr;
  if (token_.IsSymbol("-") || token_.IsSymbol("+")) {
    const bool is_negative = token_.text == "-";
    Advance();
    if (++depth_ > kMaxDepth) return Fail(position, "expressions are nested too deeply");
    Node* sign = Make(NodeKind::kSign, position, {ParseUnary(/*with_filters=*/false)});
    --depth_;
    sign->flag = is_negative;
    node = sign;
  } else {
    node = ParsePrimary();
  }
  node = ParsePostfix(node);
  return with_filters ? ParseFilters(node) : node;
}

const Node* Parser::ParsePrimary() {
  const Token token = token_;
  switch (token.kind) {
    case TokenKind::kName: {
      Advance();
      Node* node = Make(NodeKind::kConstant, token.position);
      if (token.text == "true" || token.text == "True") {
        node->value = Bool(true);
      } else if (token.text == "false" || token.text == "False") {
        node->value = Bool(false);
      } else if (token.text == "none" || token.text == "None") {
        node->value = None();
      } else {
        node->kind = NodeKind::kName;
        node->name = token.text;
        for (size_t i = 0; i < kGivenNames.size(); ++i) {
          if (token.text == kGivenNames[i]) ++given_uses_[i];
        }
      }
      return node;
    }
    case TokenKind::kString:
      return ParseString();
    case TokenKind::kInt:
    case TokenKind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  Children children(context_);
  if (Skip("(")) {
    const bool has_comma = ParseItems(")", &children);
    if (children.size() == 1 && !has_comma) return children.items()[0];
    return Make(NodeKind::kTuple, token.position, children);
  }
  if (Skip("[")) {
    ParseItems("]", &children);
    return Make(NodeKind::kList, token.position, children);
  }
  return Skip("{") ? ParseDict() : Unexpected("an expression");
}

bool Parser::ParseItems(std::string_view closing, Children* children) {
  bool has_comma = false;
  while (!context_.failed() && !token_.IsSymbol(closing)) {
    children->Add(ParseExpression());
    if (!Skip(",")) break;
    has_comma = true;
  }
  Expect(closing);
  return has_comma;
}

// Called after the brace.
const Node* Parser::ParseDict() {
  const size_t position = token_.position;
  Children children(context_);
  while (!context_.failed() && !token_.IsSymbol("}")) {
    children.Add(ParseExpression());
    Expect(":");
    children.Add(ParseExpression());
    if (!Skip(",")) break;
  }
  Expect("}");
  return Make(NodeKind::kDict, position, children);
}

const Node* Parser::ParseString() {
  const size_t position = token_.position;
  context_.set_position(position);
  Node* node = Make(NodeKind::kConstant, position);
  node->value = Trusted(context_, {});
  // Adjacent strings are one string.
  while (!context_.failed() && token_.kind == TokenKind::kString) {
    const std::string_view inside = token_.text.substr(1, token_.text.size() - 2);
    node->value =
        ApplyOperator(context_, Operator::kConcatenate, node->value, ReadString(context_, inside));
    Advance();
  }
  // One piece, so that Flat never changes a text that several renderings share.
  if (!context_.failed()) {
    node->value = Trusted(context_, Flat(context_, *node->value.text));
  }
  return node;
}

const Node* Parser::ParseNumber() {
  context_.set_position(token_.position);
  Node* node = Make(NodeKind::kConstant, token_.position);
  node->value = ReadNumber(context_, token_.text, token_.kind == TokenKind::kFloat);
  Advance();
  return node;
}

const Node* Parser::ParsePostfix(const Node* node) {
  while (!context_.failed()) {
    const size_t position = token_.position;
    if (Skip(".")) {
      if (token_.kind == TokenKind::kInt) {
        node = Make(NodeKind::kItem, position, {node, ParseNumber()});
        continue;
      }
      Node* attribute = Make(NodeKind::kAttribute, position, {node});
      attribute->name = ExpectName();
      node = attribute;
    } else if (Skip("[")) {
      node = ParseSubscript(node);
    } else if (token_.IsSymbol("(")) {
      node = ParseCall(node);
    } else {
      break;
    }
  }
  return node;
}

// Called after the bracket.
const Node* Parser::ParseSubscript(const Node* node) {
  const size_t position = token_.position;
  std::array<const Node*, 3> bounds = {};
  size_t colons = 0;
  const auto ends = [&] { return token_.IsSymbol("]") || token_.IsSymbol(":"); };
  if (!ends()) bounds[0] = ParseExpression();
  while (colons < 2 && Skip(":")) {
    ++colons;
    if (!ends()) bounds[colons] = ParseExpression();
  }
  Expect("]");
  if (colons == 0 && bounds[0] != nullptr)
    return Make(NodeKind::kItem, position, {node, bounds[0]});
  if (colons == 0) return Fail(position, "there is nothing between '[' and ']'");
  return Make(NodeKind::kSlice, position, {node, bounds[0], bounds[1], bounds[2]});
}

// Called at the parenthesis.
const Node* Parser::ParseCall(const Node* callee) {
  const size_t position = token_.position;
  const bool is_method = callee != nullptr && callee->kind == NodeKind::kAttribute;
  const bool is_function = callee != nullptr && callee->kind == NodeKind::kName;
  const bool is_random = is_function && callee->name == kRandomFunction;
  if (is_random || (is_method && IsListed(kMissingMethods, callee->name))) {
    return Fail(position, {"'", callee->name, "()' is not supported", is_random ? kIsRandom : ""});
  }
  Children children(context_);
  children.Add(callee);
  ParseArguments(&children);
  return Make(NodeKind::kCall, position, children);
}

void Parser::ParseArguments(Children* children) {
  Expect("(");
  bool has_keywords = false;  // Or lists of arguments, which only keywords follow.
  while (!context_.failed() && !token_.IsSymbol(")")) {
    const Token token = token_;
    Lexer ahead = lexer_;
    if (token.kind == TokenKind::kName && ahead.Next().IsSymbol("=")) {
      Advance();
      Advance();
      Node* keyword = Make(NodeKind::kKeyword, token.position, {ParseExpression()});
      keyword->name = token.text;
      children->Add(keyword);
      has_keywords = true;
    } else if (Skip("*") || Skip("**")) {
      Node* spread = Make(NodeKind::kSpread, token.position, {ParseExpression()});
      spread->flag = token.text == "**";
      children->Add(spread);
      has_keywords = true;
    } else if (has_keywords) {
      Unexpected("an argument with a name");
    } else {
      children->Add(ParseExpression());
    }
    if (!Skip(",")) break;
  }
  Expect(")");
}

const Node* Parser::ParseFilters(const Node* node) {
  while (!context_.failed()) {
    if (Skip("|")) {
      node = ParseFilter(node);
    } else if (SkipName("is")) {
      node = ParseTest(node);
    } else if (token_.IsSymbol("(")) {
      node = ParseCall(node);
    } else {
      break;
    }
  }
  return node;
}

// Called at the filter's name.
const Node* Parser::ParseFilter(const Node* node) {
  const size_t position = token_.position;
  Node* filter = Make(NodeKind::kFilter, position);
  filter->name = ExpectName();
  Children children(context_);
  children.Add(node);
  if (token_.IsSymbol("(")) ParseArguments(&children);
  filter->children = children.items();
  if (IsListed(kMissingFilters, filter->name)) {
    return Fail(position, {"the filter '", filter->name, "' is not supported",
                           filter->name == kRandomFilter ? kIsRandom : ""});
  }
  return filter;
}

// Called after "is".
const Node* Parser::ParseTest(const Node* node) {
  const size_t position = token_.position;
  const bool is_not = SkipName("not");
  Node* test = Make(NodeKind::kTest, position);
  test->name = ExpectName();
  Children children(context_);
  children.Add(node);
  const bool is_value = token_.kind == TokenKind::kString || token_.kind == TokenKind::kInt ||
                        token_.kind == TokenKind::kFloat || token_.kind == TokenKind::kName ||
                        token_.IsSymbol("[") || token_.IsSymbol("{");
  bool is_keyword = false;
  for (const std::string_view keyword : {"else", "or", "and", "if", "in", "is", "not"}) {
    is_keyword = is_keyword || token_.IsName(keyword);
  }
  if (token_.IsSymbol("(")) {
    ParseArguments(&children);
  } else if (is_value && !is_keyword) {
    children.Add(ParsePostfix(ParsePrimary()));
  }
  test->children = children.items();
  return is_not ? Make(NodeKind::kNot, position, {test}) : test;
}

}  // namespace cria::jinja
