#include "grammar/gbnf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"
#include "core/utf8.h"
#include "grammar/character_classes.h"
#include "grammar/characters.h"
#include "grammar/json_schema.h"
#include "grammar/text_cursor.h"

namespace cria::grammar {
namespace {

constexpr size_t kMaxGbnfDepth = 200;  // Groups within groups.

// Line and column are both counted from 1; the column in characters.
std::unexpected<Error> FailGbnf(ErrorCode code, std::string_view text, size_t position,
                                std::string_view sentence) {
  const std::string_view before = text.substr(0, position);
  const size_t line_begin = before.rfind('\n') + 1;  // 0 if there is none.
  const auto is_first_byte = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; };
  return Fail(
      code, Format("the grammar, line {}, column {}: {}", std::ranges::count(before, '\n') + 1,
                   std::ranges::count_if(before.substr(line_begin), is_first_byte) + 1, sentence));
}

struct GbnfRule {
  std::string_view name;
  size_t position;  // Where it is defined; until it is, where it was first used.
  Node node;
  bool is_defined = false;
};

// The rules by their names, in a hash table with open addressing.
class GbnfRules {
 public:
  explicit GbnfRules(Expressions& expressions) : expressions_(expressions), slots_(kNumSlots) {}

  GbnfRule& Get(std::string_view name, size_t position) {
    uint32_t hash = 2166136261;  // FNV-1a, 32 bits.
    for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
    uint32_t slot = hash % kNumSlots;
    for (; slots_[slot] != 0; slot = (slot + 1) % kNumSlots) {
      if (rules_[slots_[slot] - 1].name == name) return rules_[slots_[slot] - 1];
    }
    rules_.push_back({name, position, expressions_.NewRule()});
    slots_[slot] = static_cast<uint32_t>(rules_.size());
    return rules_.back();
  }

  bool is_full() const { return rules_.size() >= kNumSlots / 2; }
  std::span<const GbnfRule> rules() const { return rules_; }

 private:
  static constexpr uint32_t kNumSlots = 1 << 15;

  Expressions& expressions_;
  std::vector<GbnfRule> rules_;
  std::vector<uint32_t> slots_;  // The index of a rule + 1, or 0.
};

// Reads a grammar by recursive descent.
class GbnfParser {
 public:
  GbnfParser(Expressions& expressions, std::string_view text)
      : expressions_(expressions), text_(text), cursor_(text), rules_(expressions) {}

  Result<Node> Parse();

 private:
  // Spaces and comments, and line ends only if `is_nested`.
  void SkipSpace(bool is_nested);
  std::string_view TakeName();
  Status CheckRules(Node root);

  void ParseRule();
  Node ParseChoice(bool is_nested);
  Node ParseSequence(bool is_nested);
  Node ParseItem(bool is_nested);
  Node ParseGroup(size_t position);
  Node ParseLiteral(size_t position);
  Node ParseClass(size_t position);
  Node ParseSchema(size_t position);
  uint32_t ParseCharacter();
  uint32_t ParseEscape(size_t position);
  Node ParseCounts(Node node, size_t position);

  Expressions& expressions_;
  std::string_view text_;
  TextCursor cursor_;
  size_t depth_ = 0;
  GbnfRules rules_;
};

void GbnfParser::SkipSpace(bool is_nested) {
  for (;; cursor_.Skip(1)) {
    if (cursor_.Peek() == '#') cursor_.Skip(cursor_.rest().find('\n'));
    const char c = cursor_.Peek();
    if (c != ' ' && c != '\t' && !(is_nested && (c == '\n' || c == '\r'))) return;
  }
}

std::string_view GbnfParser::TakeName() {
  const std::string_view rest = cursor_.rest();
  size_t size = 0;
  while (size < rest.size() && (IsAsciiLetter(rest[size]) || IsDecimalDigit(rest[size]) ||
                                rest[size] == '-' || rest[size] == '_')) {
    ++size;
  }
  cursor_.Skip(size);
  return rest.substr(0, size);
}

Result<Node> GbnfParser::Parse() {
  const Node root = rules_.Get("root", 0).node;
  SkipSpace(true);
  while (!cursor_.AtEnd()) {
    ParseRule();
    SkipSpace(true);
  }
  CRIA_RETURN_IF_ERROR(expressions_.status());
  if (const auto& failure = cursor_.failure()) {
    return FailGbnf(failure->code, text_, failure->position, failure->sentence);
  }
  CRIA_RETURN_IF_ERROR(CheckRules(root));
  return root;
}

Status GbnfParser::CheckRules(Node root) {
  for (const GbnfRule& rule : rules_.rules()) {
    if (rule.is_defined) continue;
    if (rule.node == root) {
      return FailGbnf(ErrorCode::kUsage, text_, 0,
                      "there is no rule 'root ::= …', which says what the whole text is");
    }
    return FailGbnf(ErrorCode::kUsage, text_, rule.position,
                    "there is no rule '" + Quotable(rule.name) + "'");
  }
  const auto problem = expressions_.FindRuleProblem(root);
  CRIA_RETURN_IF_ERROR(expressions_.status());
  using Kind = Expressions::RuleProblem::Kind;
  if (problem.kind == Kind::kNone) return {};
  for (const GbnfRule& rule : rules_.rules()) {
    if (rule.node != problem.rule) continue;
    const bool is_left_recursive = problem.kind == Kind::kLeftRecursive;
    return FailGbnf(
        is_left_recursive ? ErrorCode::kUnsupported : ErrorCode::kUsage, text_, rule.position,
        "the rule '" + Quotable(rule.name) +
            (is_left_recursive
                 ? "' can begin with itself, which is not supported: write what is repeated as "
                   "(…)*"
                 : "' never ends: no text matches it"));
  }
  return {};
}

void GbnfParser::ParseRule() {
  const size_t position = cursor_.position();
  const std::string_view name = TakeName();
  if (name.empty()) {
    cursor_.Fail(position, "a rule is expected here, 'name ::= …'");
    return;
  }
  SkipSpace(false);
  if (!cursor_.Take("::=")) {
    cursor_.Fail(cursor_.position(), "'::=' is expected behind the name of a rule");
    return;
  }
  if (rules_.is_full()) {
    cursor_.Fail(position, "more than 16384 rules are not supported", ErrorCode::kUnsupported);
    return;
  }
  const GbnfRule rule = rules_.Get(name, position);
  if (rule.is_defined) {
    cursor_.Fail(position, "there is already a rule '" + Quotable(name) + "'");
    return;
  }
  SkipSpace(true);
  const Node body = ParseChoice(false);
  if (!cursor_.AtEnd() && cursor_.Peek() != '\n' && cursor_.Peek() != '\r') {
    cursor_.Fail(cursor_.position(),
                 cursor_.Peek() == ')'
                     ? "')' closes no group"
                     : "a literal, a class, a group, the name of a rule, '|' or the "
                       "end of the line is expected here");
  }
  if (cursor_.failure()) return;
  expressions_.Define(rule.node, body);
  GbnfRule& defined = rules_.Get(name, position);
  defined.position = position;
  defined.is_defined = true;
}

// Reads up to the end of the line or, if `is_nested`, the group's `)`.
Node GbnfParser::ParseChoice(bool is_nested) {
  std::vector<Node> options;
  for (;;) {
    options.push_back(ParseSequence(is_nested));
    if (!cursor_.Take("|")) break;
    SkipSpace(true);
  }
  return expressions_.Choice(options);
}

Node GbnfParser::ParseSequence(bool is_nested) {
  std::vector<Node> parts;
  while (!cursor_.AtEnd() && cursor_.Peek() != '|' && cursor_.Peek() != ')' &&
         cursor_.Peek() != '\n' && cursor_.Peek() != '\r') {
    const size_t position = cursor_.position();
    Node node = ParseItem(is_nested);
    // The item is none if something is there that no item begins with.
    if (cursor_.position() == position) break;
    SkipSpace(is_nested);
    for (size_t begin = cursor_.position(); !cursor_.AtEnd(); begin = cursor_.position()) {
      if (cursor_.Take("*")) {
        node = expressions_.Repeat(node, 0, kUnbounded);
      } else if (cursor_.Take("+")) {
        node = expressions_.Repeat(node, 1, kUnbounded);
      } else if (cursor_.Take("?")) {
        node = expressions_.Repeat(node, 0, 1);
      } else if (cursor_.Take("{")) {
        node = ParseCounts(node, begin);
      } else {
        break;
      }
      SkipSpace(is_nested);
    }
    parts.push_back(node);
    // What is wrong is said at the end.
    if (!expressions_.status()) cursor_.Skip(text_.size());
  }
  return expressions_.Sequence(parts);
}

// Reads one item without its repetition; nothing if none begins here.
Node GbnfParser::ParseItem(bool is_nested) {
  const size_t position = cursor_.position();
  if (cursor_.Take("\"")) return ParseLiteral(position);
  if (cursor_.Take("[")) return ParseClass(position);
  if (cursor_.Take("(")) return ParseGroup(position);
  if (cursor_.Take("%json")) return ParseSchema(position);
  if (cursor_.Take(".")) return AnyCharacter(expressions_, CharacterEncoding::kUtf8);
  const char c = cursor_.Peek();
  if (c == '*' || c == '+' || c == '?' || c == '{') {
    return cursor_.Fail(position, "there is nothing before the repetition that it could repeat");
  }
  if (c == '<' || c == '!') {
    return cursor_.Fail(position,
                        "tokens of a vocabulary, <…>, are not supported: write the text as \"…\"",
                        ErrorCode::kUnsupported);
  }
  const std::string_view name = TakeName();
  if (name.empty()) return Expressions::kNothing;
  if (rules_.is_full()) {
    return cursor_.Fail(position, "more than 16384 rules are not supported",
                        ErrorCode::kUnsupported);
  }
  const Node node = rules_.Get(name, position).node;
  SkipSpace(is_nested);
  if (cursor_.rest().starts_with("::=")) {
    return cursor_.Fail(position, is_nested ? "a group is not closed before this rule"
                                            : "a rule begins on its own line");
  }
  return node;
}

Node GbnfParser::ParseGroup(size_t position) {
  if (++depth_ > kMaxGbnfDepth) {
    return cursor_.Fail(position, "groups are nested more than 200 deep", ErrorCode::kUnsupported);
  }
  SkipSpace(true);
  const Node inner = ParseChoice(true);
  --depth_;
  if (!cursor_.AtEnd() && cursor_.Peek() != ')') {
    return cursor_.Fail(
        cursor_.position(),
        "a literal, a class, a group, the name of a rule, '|' or ')' is expected here");
  }
  if (!cursor_.Take(")")) return cursor_.Fail(position, "'(' is not closed");
  return inner;
}

Node GbnfParser::ParseLiteral(size_t position) {
  std::string literal;
  std::array<char, kMaxUtf8Bytes> buffer;
  while (!cursor_.Take("\"")) {
    if (cursor_.AtEnd()) return cursor_.Fail(position, "the literal is not closed by '\"'");
    const size_t begin = cursor_.position();
    const uint32_t character = ParseCharacter();
    if (character >= 0xD800 && character < 0xE000) {
      return cursor_.Fail(begin,
                          "this is half of a surrogate pair, and no character; write \\UHHHHHHHH");
    }
    literal += EncodeUtf8(character, &buffer);
  }
  return Literal(expressions_, literal, CharacterEncoding::kUtf8);
}

Node GbnfParser::ParseClass(size_t position) {
  CharacterSet set;
  const bool is_complement = cursor_.Take("^");
  while (!cursor_.Take("]")) {
    if (cursor_.AtEnd()) return cursor_.Fail(position, "'[' is not closed by ']'");
    const size_t range = cursor_.position();
    const uint32_t first = ParseCharacter();
    uint32_t last = first;
    // A `-` at the end is a character.
    if (cursor_.rest().size() > 1 && cursor_.Peek(1) != ']' && cursor_.Take("-")) {
      last = ParseCharacter();
      if (first > last) cursor_.Fail(range, "the range's first character comes after its last");
    }
    set.Add(first, last);
  }
  set.Normalize();
  if (is_complement) set.Complement();
  if (set.empty()) return cursor_.Fail(position, "the class has no characters");
  return Characters(expressions_, set.ranges(), CharacterEncoding::kUtf8);
}

// The values that match the JSON Schema behind %json, an object.
Node GbnfParser::ParseSchema(size_t position) {
  SkipSpace(false);
  const std::string_view rest = cursor_.rest();
  size_t depth = 0;
  bool is_in_string = false;
  size_t size = 0;
  do {
    if (size == rest.size() || (size == 0 && rest[0] != '{')) {
      return cursor_.Fail(position, "%json is followed by a schema, %json {…}");
    }
    const char c = rest[size++];
    if (c == '\\' && is_in_string && size < rest.size()) ++size;
    if (c == '"') is_in_string = !is_in_string;
    if (c == '{' && !is_in_string) ++depth;
    if (c == '}' && !is_in_string) --depth;
  } while (depth > 0);
  cursor_.Skip(size);
  const Result<Node> schema = ReadJsonSchema(expressions_, rest.substr(0, size));
  if (schema) return *schema;
  return cursor_.Fail(position, schema.error().message(), schema.error().code());
}

// One character of a literal or a class.
uint32_t GbnfParser::ParseCharacter() {
  const size_t position = cursor_.position();
  return cursor_.Take("\\") ? ParseEscape(position) : cursor_.TakeCodePoint();
}

// Reads an escape behind its backslash.
uint32_t GbnfParser::ParseEscape(size_t position) {
  const char c = cursor_.Peek();
  if (cursor_.AtEnd() || (!IsAsciiLetter(c) && !IsDecimalDigit(c))) return cursor_.TakeCodePoint();
  cursor_.Skip(1);
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      break;
  }
  const size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (num_digits == 0) {
    return cursor_.Fail(position, std::string("'\\") + c +
                                      "' is no escape: there are \\n, \\r, \\t, \\xHH, \\uHHHH and "
                                      "\\UHHHHHHHH, and '\\' before any punctuation");
  }
  const auto value = cursor_.TakeHexDigits(num_digits);
  if (value && *value <= kMaxCodePoint) return *value;
  return cursor_.Fail(position,
                      "an escape is written \\xHH, \\uHHHH or \\UHHHHHHHH, with hexadecimal "
                      "digits and up to 10FFFF");
}

// Reads {m}, {m,} or {m,n} behind its `{`.
Node GbnfParser::ParseCounts(Node node, size_t position) {
  SkipSpace(false);
  const auto first = cursor_.TakeCount();
  const uint32_t min = first.value_or(0);
  uint32_t max = min;
  SkipSpace(false);
  if (cursor_.Take(",")) {
    SkipSpace(false);
    max = cursor_.TakeCount().value_or(kUnbounded);
    SkipSpace(false);
  }
  if (!first || !cursor_.Take("}"))
    return cursor_.Fail(position, "a repetition is written {m}, {m,} or {m,n}");
  if (min > kMaxRepetitions || (max > kMaxRepetitions && max != kUnbounded)) {
    return cursor_.Fail(position, "more than 1000000 repetitions are not supported",
                        ErrorCode::kUnsupported);
  }
  if (min > max)
    return cursor_.Fail(position, "the repetition's first number is larger than its second");
  return expressions_.Repeat(node, min, max);
}

}  // namespace

Result<Node> ReadGbnf(Expressions& expressions, std::string_view text) {
  if (text.size() > kMaxGbnfBytes) {
    return FailGbnf(ErrorCode::kUnsupported, text, kMaxGbnfBytes,
                    "a grammar may have 262144 bytes; this one is longer");
  }
  const size_t valid_bytes = ValidUtf8Prefix(text);
  if (valid_bytes < text.size()) {
    return FailGbnf(ErrorCode::kUsage, text, valid_bytes, "this is not UTF-8");
  }
  return GbnfParser(expressions, text).Parse();
}

}  // namespace cria::grammar
