#include <string>

#include "core/format.h"
#include "server/api/argument_grammar.h"
#include "server/api/parameter_kind.h"

namespace cria::server {
namespace {

bool HasReference(const Json& schema) { return Written(schema).contains("\"$ref\""); }

class TaggedGrammarWriter {
 public:
  TaggedGrammarWriter(const CallForm& form, const Json& schema)
      : form_(form),
        schema_(schema),
        closing_(TrimSpace(form.param_close)),
        before_value_(form.param_name_end),
        after_value_(form.param_close) {}

  std::string Write() {
    const auto properties = schema_.find("properties");
    std::string arguments = "arguments ::=";
    if (properties != schema_.end() && properties->is_object()) {
      for (const auto& [name, schema] : properties->items()) {
        const std::string parameter = " " + Parameter(name, schema);
        const bool is_required = schema_.contains("required") && schema_["required"].is_array() &&
                                 std::ranges::contains(schema_["required"], Json(name));
        arguments += is_required ? parameter : " (" + parameter + " )?";
      }
    } else {
      arguments += Format(" ( {} [a-zA-Z0-9_.\\-]+ {} text0 )*", GrammarLiteral(form_.param_open),
                          GrammarLiteral(before_value_));
    }
    arguments += " " + GrammarLiteral(form_.call_close) + "\n";
    return arguments + TextRules("text", closing_);
  }

 private:
  std::string Parameter(const std::string& name, const Json& schema) const {
    return GrammarLiteral(std::string(form_.param_open) + name + std::string(before_value_)) + " " +
           Value(name, schema);
  }

  std::string Value(const std::string& name, const Json& schema) const {
    if (const auto values = schema.find("enum"); schema.is_object() && values != schema.end() &&
                                                 KindOf(schema, schema_) == ParameterKind::kText) {
      return Texts(*values);
    }
    if (KindOf(schema, schema_) != ParameterKind::kValue) return "text0";
    return "%json " + Schema(name, schema) + " " + GrammarLiteral(after_value_);
  }

  std::string Texts(const Json& values) const {
    std::string texts = "(";
    for (const Json& value : values) {
      if (!value.is_string()) continue;
      if (texts.size() > 1) texts += " |";
      texts += " " + GrammarLiteral(value.get<std::string>());
    }
    return texts + " ) " + GrammarLiteral(after_value_);
  }

  // A schema that refers to others needs the whole document.
  std::string Schema(const std::string& name, const Json& schema) const {
    if (!HasReference(schema)) return Written(schema);
    return Written(SchemaOfProperty(schema_, name));
  }

  const CallForm& form_;
  const Json& schema_;
  const std::string_view closing_;
  const std::string_view before_value_;
  const std::string_view after_value_;
};

}  // namespace

std::string TaggedGrammar(const CallForm& form, const Json& schema) {
  return TaggedGrammarWriter(form, schema).Write();
}

}  // namespace cria::server
