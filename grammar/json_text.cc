#include "grammar/json_text.h"

#include <array>
#include <cstdint>

#include "grammar/characters.h"
#include "grammar/number_ranges.h"

namespace cria::grammar {

Node JsonText::Space() {
  if (space_ != Expressions::kNothing) return space_;
  Expressions& e = expressions_;
  const Node line = e.Sequence(e.Byte('\n'), e.Repeat(e.Byte(' '), 0, kMaxIndent));
  space_ = e.Choice(std::array{Expressions::kEmpty, e.Byte(' '), line});
  return space_;
}

Node JsonText::AnyCharacters() {
  if (characters_ == Expressions::kNothing) {
    characters_ = expressions_.Repeat(AnyCharacter(expressions_, CharacterEncoding::kJsonString), 0,
                                      kUnbounded);
  }
  return characters_;
}

Node JsonText::Quoted(Node content) {
  const Node quote = expressions_.Byte('"');
  return expressions_.Sequence(std::array{quote, content, quote});
}

Node JsonText::String(std::string_view utf8) {
  return Quoted(Literal(expressions_, utf8, CharacterEncoding::kJsonString));
}

Node JsonText::AnyString() { return Quoted(AnyCharacters()); }

Node JsonText::AnyNumber() { return NumberInRange(expressions_, {}, {}, NumberKind::kAny); }

Node JsonText::Next(Node node) {
  return expressions_.Sequence(std::array{expressions_.Byte(','), Space(), node});
}

Node JsonText::Member(Node name, Node value) {
  return expressions_.Sequence(std::array{name, expressions_.Byte(':'), Space(), value});
}

Node JsonText::Bracketed(char open, Node items, char close) {
  Expressions& e = expressions_;
  return e.Sequence(std::array{e.Byte(static_cast<uint8_t>(open)), Space(), items,
                               e.Byte(static_cast<uint8_t>(close))});
}

Node JsonText::List(Node item) {
  Expressions& e = expressions_;
  return e.Optional(e.Sequence(std::array{item, e.Repeat(Next(item), 0, kUnbounded), Space()}));
}

Node JsonText::AnyObject() {
  if (object_ == Expressions::kNothing) {
    object_ = Bracketed('{', List(Member(AnyString(), AnyValue())), '}');
  }
  return object_;
}

Node JsonText::AnyArray() {
  if (array_ == Expressions::kNothing) array_ = Bracketed('[', List(AnyValue()), ']');
  return array_;
}

Node JsonText::AnyValue() {
  if (value_ != Expressions::kNothing) return value_;
  Expressions& e = expressions_;
  value_ = e.NewRule();
  // Without memory for the rule, the values in values would never end.
  if (value_ == Expressions::kNothing) return value_;
  e.Define(value_, e.Choice(std::array{e.Text("null"), e.Text("true"), e.Text("false"), AnyNumber(),
                                       AnyString(), AnyArray(), AnyObject()}));
  return value_;
}

}  // namespace cria::grammar
