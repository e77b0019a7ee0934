#include "jinja/parser.h"

namespace cria::jinja {
namespace {

// Counts the depth of the parser's recursion.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(++depth) {}
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

}  // namespace

Parser::Parser(Context& context, std::string_view source)
    : context_(context), source_(source), lexer_(context, source) {}

Node* Parser::Make(NodeKind kind, size_t position) {
  return context_.New<Node>({.kind = kind, .position = static_cast<uint32_t>(position)});
}

Node* Parser::Make(NodeKind kind, size_t position, std::initializer_list<const Node*> children) {
  Node* node = Make(kind, position);
  const auto copies = context_.Array<const Node*>(children.size());
  // After a failure, the node is not used.
  if (copies.empty()) return node;
  size_t i = 0;
  for (const Node* child : children) copies[i++] = child;
  node->children = copies;
  return node;
}

Node* Parser::Make(NodeKind kind, size_t position, const Children& children) {
  Node* node = Make(kind, position);
  node->children = children.items();
  return node;
}

void Parser::Advance() { token_ = lexer_.Next(); }

bool Parser::Skip(std::string_view symbol) {
  if (!token_.IsSymbol(symbol)) return false;
  Advance();
  return true;
}

bool Parser::SkipName(std::string_view name) {
  if (!token_.IsName(name)) return false;
  Advance();
  return true;
}

const Node* Parser::Fail(size_t position, std::initializer_list<std::string_view> parts) {
  context_.set_position(position);
  context_.Fail(parts);
  return nullptr;
}

const Node* Parser::Fail(size_t position, const char* sentence) {
  return Fail(position, {std::string_view(sentence)});
}

const Node* Parser::Unexpected(std::string_view wanted) {
  if (token_.kind == TokenKind::kEnd) {
    return Fail(token_.position, {"the template ends where ", wanted, " should be"});
  }
  return Fail(token_.position, {"'", token_.text, "' stands where ", wanted, " should be"});
}

void Parser::Expect(std::string_view symbol) {
  if (Skip(symbol)) return;
  const char quoted[] = {'\'', symbol[0], '\'', '\0'};
  Unexpected(quoted);
}

std::string_view Parser::ExpectName() {
  const std::string_view name = token_.text;
  if (token_.kind != TokenKind::kName) {
    Unexpected("a name");
  } else {
    Advance();
  }
  return name;
}

void Parser::EndBlock() {
  if (token_.kind != TokenKind::kBlockEnd) {
    Unexpected("'%}'");
    return;
  }
  Advance();
}

void Parser::SkipEnd() {
  Advance();
  EndBlock();
}

const Node* Parser::Parse() {
  Advance();
  const Node* body = ParseBody({});
  if (!context_.failed() && token_.kind != TokenKind::kEnd) Unexpected("another statement");
  return body;
}

// Parses statements up to the end, or to a block that begins with one of `ends`, whose name is then
// the current token.
const Node* Parser::ParseBody(std::initializer_list<std::string_view> ends) {
  const Deeper deeper(depth_);
  const size_t position = token_.position;
  if (depth_ > kMaxDepth) return Fail(position, "blocks are nested too deeply");
  Children children(context_);
  while (!context_.failed() && token_.kind != TokenKind::kEnd) {
    if (token_.kind == TokenKind::kText) {
      Node* text = Make(NodeKind::kWrite, token_.position);
      text->value = Trusted(context_, token_.text);
      children.Add(text);
      Advance();
    } else if (token_.kind == TokenKind::kPrintBegin) {
      children.Add(ParsePrint());
    } else {
      Advance();
      bool at_end = false;
      for (const std::string_view end : ends) at_end = at_end || token_.IsName(end);
      if (at_end) break;
      if (const Node* statement = ParseStatement()) children.Add(statement);
    }
  }
  if (token_.kind == TokenKind::kEnd && ends.size() > 0) {
    const std::string_view end = *(ends.end() - 1);
    Fail(position, {"the block before this is not closed by '", end, "'"});
  }
  return Make(NodeKind::kBody, position, children);
}

const Node* Parser::ParsePrint() {
  const size_t position = token_.position;
  Advance();
  const Node* expression = ParseTuple();
  if (token_.kind != TokenKind::kPrintEnd) return Unexpected("'}}'");
  Advance();
  return Make(NodeKind::kPrint, position, {expression});
}

// Called at the name of a statement. Returns null also for a statement that does nothing.
const Node* Parser::ParseStatement() {
  const Token name = token_;
  if (name.kind != TokenKind::kName) return Unexpected("the name of a statement");
  Advance();
  if (name.text == "if") return ParseIf();
  if (name.text == "for") return ParseFor();
  if (name.text == "set") return ParseSet();
  if (name.text == "with") return ParseWith();
  if (name.text == "macro" || name.text == "call") return ParseMacro(name.text == "call");
  if (name.text == "filter") return ParseFilterBlock();
  if (name.text == "break" || name.text == "continue") {
    if (loops_ == 0) return Fail(name.position, {"'", name.text, "' is outside of a loop"});
    EndBlock();
    return Make(name.text == "break" ? NodeKind::kBreak : NodeKind::kContinue, name.position);
  }
  if (name.text == "generation") {
    // {% generation %} marks the model's own text for training; it does nothing here.
    return ParseBlock("endgeneration");
  }
  return Fail(name.position, {"the statement '", name.text, "' is not supported here"});
}

const Node* Parser::ParseIf() {
  const size_t position = token_.position;
  Children children(context_);
  while (!context_.failed()) {
    children.Add(ParseExpression());
    EndBlock();
    children.Add(ParseBody({"elif", "else", "endif"}));
    if (SkipName("elif")) continue;
    if (SkipName("else")) {
      children.Add(ParseBlock("endif"));
    } else {
      SkipEnd();
    }
    break;
  }
  return Make(NodeKind::kIf, position, children);
}

const Node* Parser::ParseFor() {
  const size_t position = token_.position;
  const Node* target = ParseTargets(/*with_attributes=*/false);
  if (!SkipName("in")) return Unexpected("'in'");
  const Node* iterated = ParseOr();
  if (token_.IsSymbol(",")) return Fail(token_.position, "a loop over several values needs ( )");
  const Node* condition = SkipName("if") ? ParseExpression() : nullptr;
  const bool is_recursive = SkipName("recursive");
  EndBlock();
  ++loops_;
  const Node* body = ParseBody({"else", "endfor"});
  --loops_;
  const Node* otherwise = nullptr;
  if (SkipName("else")) {
    otherwise = ParseBlock("endfor");
  } else {
    SkipEnd();
  }
  Node* loop = Make(NodeKind::kFor, position, {target, iterated, condition, body, otherwise});
  loop->flag = is_recursive;
  return loop;
}

const Node* Parser::ParseTarget(bool with_attributes) {
  const size_t position = token_.position;
  if (Skip("(")) {
    const Node* targets = ParseTargets(with_attributes);
    Expect(")");
    return targets;
  }
  Node* target = Make(NodeKind::kName, position);
  target->name = ExpectName();
  if (!with_attributes || !Skip(".")) return target;
  Node* attribute = Make(NodeKind::kAttribute, position, {target});
  attribute->name = ExpectName();
  return attribute;
}

// Parses one target, or several with commas between.
const Node* Parser::ParseTargets(bool with_attributes) {
  const Deeper deeper(depth_);
  const size_t position = token_.position;
  if (depth_ > kMaxDepth) return Fail(position, "parentheses are nested too deeply");
  const Node* first = ParseTarget(with_attributes);
  if (!token_.IsSymbol(",")) return first;
  Children targets(context_);
  targets.Add(first);
  while (Skip(",") && token_.kind == TokenKind::kName && !token_.IsName("in")) {
    targets.Add(ParseTarget(with_attributes));
  }
  return Make(NodeKind::kTuple, position, targets);
}

const Node* Parser::ParseSet() {
  const size_t position = token_.position;
  const Node* target = ParseTargets(/*with_attributes=*/true);
  if (Skip("=")) {
    const Node* value = ParseTuple();
    EndBlock();
    return Make(NodeKind::kSet, position, {target, value});
  }
  return FinishSetBlock(position, target, Make(NodeKind::kCaptured, position), "endset");
}

const Node* Parser::ParseWith() {
  const size_t position = token_.position;
  Children targets(context_);
  Children values(context_);
  while (!context_.failed() && token_.kind != TokenKind::kBlockEnd) {
    if (targets.size() > 0) Expect(",");
    targets.Add(ParseTargets(/*with_attributes=*/false));
    Expect("=");
    values.Add(ParseExpression());
  }
  return Make(NodeKind::kWith, position,
              {Make(NodeKind::kTuple, position, targets), Make(NodeKind::kTuple, position, values),
               ParseBlock("endwith")});
}

const Node* Parser::ParseMacro(bool is_call) {
  constexpr std::string_view kCaller = kGivenNames[0];
  Node* macro = Make(NodeKind::kMacroBlock, token_.position);
  macro->name = is_call ? kCaller : ExpectName();
  Children children(context_);
  children.Add(nullptr);
  if (!is_call || token_.IsSymbol("(")) {
    Expect("(");
    while (!context_.failed() && !token_.IsSymbol(")")) {
      Node* parameter = Make(NodeKind::kName, token_.position);
      const std::string_view name = ExpectName();
      if (Skip("=")) parameter = Make(NodeKind::kName, token_.position, {ParseExpression()});
      parameter->name = name;
      children.Add(parameter);
      if (!Skip(",")) break;
    }
    Expect(")");
  }
  const size_t call_position = token_.position;
  const Node* const call = is_call ? ParseExpression() : nullptr;
  if (is_call && (call == nullptr || call->kind != NodeKind::kCall)) {
    return Fail(call_position, "'call' is not followed by the call of a macro");
  }
  const int loops_outside = loops_;
  loops_ = 0;
  const auto uses_before = given_uses_;
  const Node* body = ParseBlock(is_call ? "endcall" : "endmacro");
  loops_ = loops_outside;
  if (context_.failed()) return nullptr;
  children.items()[0] = body;
  const auto own = children.items();
  for (size_t i = 0; i < kGivenNames.size(); ++i) {
    bool is_given = given_uses_[i] > uses_before[i];
    for (const Node* parameter : own.subspan(1)) {
      is_given = is_given && parameter->name != kGivenNames[i];
    }
    if (!is_given) continue;
    Node* parameter = Make(NodeKind::kName, macro->position);
    parameter->name = kGivenNames[i];
    parameter->flag = true;
    children.Add(parameter);
  }
  macro->children = children.items();
  if (!is_call) return macro;
  Children arguments(context_);
  for (const Node* child : call->children) arguments.Add(child);
  Node* keyword = Make(NodeKind::kKeyword, call_position, {macro});
  keyword->name = kCaller;
  arguments.Add(keyword);
  return Make(NodeKind::kPrint, call_position, {Make(NodeKind::kCall, call->position, arguments)});
}

const Node* Parser::ParseFilterBlock() {
  const size_t position = token_.position;
  const Node* value = ParseFilter(Make(NodeKind::kCaptured, position));
  return FinishSetBlock(position, nullptr, value, "endfilter");
}

// Parses more filters, and the block up to the statement `end`.
const Node* Parser::FinishSetBlock(size_t position, const Node* target, const Node* value,
                                   std::string_view end) {
  while (Skip("|") && !context_.failed()) value = ParseFilter(value);
  return Make(NodeKind::kSetBlock, position, {target, ParseBlock(end), value});
}

// Parses the rest of a statement, its block, and the statement `end`.
const Node* Parser::ParseBlock(std::string_view end) {
  EndBlock();
  const Node* body = ParseBody({end});
  SkipEnd();
  return body;
}

}  // namespace cria::jinja
