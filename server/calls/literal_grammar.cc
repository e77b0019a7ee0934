#include <algorithm>
#include <string>
#include <vector>

#include "core/format.h"
#include "server/calls/argument_grammar.h"
#include "server/calls/literal_reader.h"
#include "server/calls/parameter_kind.h"

namespace cria::server {
namespace {

// Values as Python or Gemma 4 writes them.
class LiteralGrammarWriter {
 public:
  LiteralGrammarWriter(const CallForm& form, const Json& schema)
      : is_python_(form.style == ArgumentStyle::kPython), form_(form), schema_(schema) {}

  std::string Write() {
    const std::string members = Members(schema_, is_python_ ? "\"=\"" : "\":\"", 0);
    if (is_python_) {
      rules_ += "arguments ::= " + members + " " + GrammarLiteral(form_.call_close) + "\n";
    } else {
      rules_ += "arguments ::= \"{\" " + members + " \"}\"\n";
    }
    return rules_ + CommonRules();
  }

 private:
  // A value that is nested more deeply, or comes when the rules are this long, may be any value.
  static constexpr size_t kMaxDepth = 8;
  static constexpr size_t kMaxBytes = size_t{1} << 14;

  std::string CommonRules() const {
    const std::string values =
        "any ::= text | %json {\"type\":\"number\"} | " + Words({"true", "false", "null"}) +
        " | \"[\" ( any ( comma any )* )? \"]\" | \"{\" ( member ( comma member )* )? \"}\"\n";
    if (!is_python_) {
      return values + "comma ::= \",\"\nmember ::= [a-zA-Z0-9_]+ \":\" any\ntext ::= " +
             GrammarLiteral(kGemmaQuote) + " text0\n" + TextRules("text", kGemmaQuote);
    }
    return values +
           "comma ::= \", \"\nmember ::= text \": \" any\n"
           "text ::= \"\\\"\" ( [^\"\\\\\\n] | \"\\\\\" [nrtbf\"'\\\\/] )* \"\\\"\" | "
           "\"'\" ( [^'\\\\\\n] | \"\\\\\" [nrtbf\"'\\\\/] )* \"'\"\n";
  }

  std::string Words(std::initializer_list<std::string_view> words) const {
    std::string choice = "(";
    for (const std::string_view word : words) {
      if (choice.size() > 1) choice += " |";
      choice += " " + GrammarLiteral(Word(word));
    }
    return choice + " )";
  }

  std::string Word(std::string_view word) const {
    if (!is_python_) return std::string(word);
    return word == "true" ? "True" : word == "false" ? "False" : "None";
  }

  std::string Text(const std::string& text) const {
    if (is_python_) return GrammarLiteral(Written(text));
    return GrammarLiteral(std::string(kGemmaQuote) + text + std::string(kGemmaQuote));
  }

  std::string Constant(const Json& value) const {
    if (value.is_string()) return Text(value.get<std::string>());
    if (value.is_boolean() || value.is_null()) return GrammarLiteral(Word(Written(value)));
    return value.is_number() ? GrammarLiteral(Written(value)) : "any";
  }

  std::string Value(const Json& schema, size_t depth) {
    if (!schema.is_object() || depth > kMaxDepth || rules_.size() > kMaxBytes) return "any";
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
      const Json* const target = FollowReference(*reference, schema_);
      return target == nullptr ? "any" : Value(*target, depth + 1);
    }
    if (schema.contains("const")) return Constant(schema["const"]);
    if (const auto values = schema.find("enum");
        values != schema.end() && values->is_array() && !values->empty()) {
      std::string choice = "(";
      for (const Json& value : *values) {
        choice += (choice.size() > 1 ? " | " : " ") + Constant(value);
      }
      return choice + " )";
    }
    const Json type = schema.value("type", Json());
    if (type == "string") return "text";
    if (type == "integer" || type == "number") return "%json " + Written(schema);
    if (type == "boolean") return Words({"true", "false"});
    if (type == "null") return Words({"null"});
    if (type == "array") {
      // It stands there twice, and so would everything that is in it.
      const std::string item = Format("i{}", num_rules_++);
      const std::string value = Value(schema.value("items", Json()), depth + 1);
      rules_ += Format("{} ::= {}\n", item, value);
      return Format("( \"[\" ( {} ( comma {} )* )? \"]\" )", item, item);
    }
    if (type == "object" && schema.contains("properties")) {
      return "( \"{\" " + Members(schema, is_python_ ? "\": \"" : "\":\"", depth + 1) + " \"}\" )";
    }
    if (type == "object") return "( \"{\" ( member ( comma member )* )? \"}\" )";
    return "any";
  }

  // Returns the rule of what stands between the braces of an object, or between the parentheses of
  // a call. For each property, there are two rules of the members from it on: the one that ends
  // with f is used if they are the first ones, and the one that ends with n behind others, from
  // which a comma separates them.
  std::string Members(const Json& schema, const std::string& colon, size_t depth) {
    const auto found = schema.find("properties");
    if (found == schema.end() || !found->is_object()) {
      return is_python_ && depth == 0
                 ? "( [a-zA-Z0-9_]+ \"=\" any ( comma [a-zA-Z0-9_]+ \"=\" any )* )?"
                 : "( member ( comma member )* )?";
    }
    std::vector<std::string> names;
    names.reserve(found->size());
    for (const auto& [name, value] : found->items()) names.push_back(name);
    // The templates of Gemma 4 sort them.
    if (!is_python_) std::ranges::sort(names);
    const std::string rule = Format("m{}-", num_rules_++);
    for (size_t i = 0; i < names.size(); ++i) {
      const bool is_required = IsRequired(schema, names[i]);
      const bool has_quotes = is_python_ && depth > 0;
      const std::string member = (has_quotes ? Text(names[i]) : GrammarLiteral(names[i])) + " " +
                                 colon + " " + Value((*found)[names[i]], depth);
      const std::string next = Format("{}{}", rule, i + 1);
      rules_ += Format("{}{}f ::= {} {}n{}\n", rule, i, member, next,
                       is_required ? "" : " | " + next + "f");
      rules_ += Format("{}{}n ::= comma {} {}n{}\n", rule, i, member, next,
                       is_required ? "" : " | " + next + "n");
    }
    rules_ += Format("{}{}f ::= \"\"\n{}{}n ::= \"\"\n", rule, names.size(), rule, names.size());
    return rule + "0f";
  }

  const bool is_python_;
  const CallForm& form_;
  const Json& schema_;
  std::string rules_;
  size_t num_rules_ = 0;
};

}  // namespace

std::string LiteralRules(const CallForm& form, const Json& schema) {
  return LiteralGrammarWriter(form, schema).Write();
}

}  // namespace cria::server
