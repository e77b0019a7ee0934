#include "server/calls/argument_grammar.h"

#include <string>
#include <string_view>

#include "core/format.h"

namespace cria::server {
namespace {

// A class of all characters but these.
std::string OtherThan(std::string_view characters) {
  std::string text = "[^";
  for (const char c : characters) {
    if (c == ']' || c == '[' || c == '\\' || c == '^' || c == '-') text += '\\';
    text += c;
  }
  return text + "]";
}

}  // namespace

std::string ArgumentRules(const CallForm& form, const Tool& tool) {
  const Json schema = TryReadJson(tool.parameters).value_or(Json::object());
  return form.style == ArgumentStyle::kTagged ? TaggedRules(form, schema)
                                              : LiteralRules(form, schema);
}

std::string NameGrammar(const ToolUse& use) {
  std::string grammar = "root ::= ";
  for (const Tool& tool : use.tools) {
    if (&tool != &use.tools.front()) grammar += " | ";
    // ReadTools allows no character that would have to be escaped.
    grammar += '"' + tool.name + '"';
  }
  return grammar + "\n";
}

std::string GrammarLiteral(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    if (c == '\n') {
      literal += "\\n";
    } else if (c == '\r') {
      literal += "\\r";
    } else {
      literal += c;
    }
  }
  return literal + '"';
}

// A rule for each number of characters of `closing` that have come: what the next character does.
std::string TextRules(std::string_view name, std::string_view closing) {
  std::string letters;
  for (const char c : closing) {
    if (!letters.contains(c)) letters += c;
  }
  std::string rules;
  for (size_t come = 0; come < closing.size(); ++come) {
    rules += Format("{}{} ::= {} {}0", name, come, OtherThan(letters), name);
    for (const char c : letters) {
      const std::string text = std::string(closing.substr(0, come)) + c;
      size_t next = text.size();
      while (!text.ends_with(closing.substr(0, next))) --next;
      rules += " | " + GrammarLiteral(std::string_view(&c, 1));
      if (next < closing.size()) rules += Format(" {}{}", name, next);
    }
    rules += '\n';
  }
  return rules;
}

}  // namespace cria::server
