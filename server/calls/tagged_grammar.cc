#include <string>
#include <string_view>

#include "core/format.h"
#include "grammar/gbnf.h"
#include "server/calls/argument_grammar.h"
#include "server/calls/parameter_kind.h"
#include "server/calls/tool_format.h"

namespace cria::server {
namespace {

class TaggedGrammarWriter {
 public:
  TaggedGrammarWriter(const CallForm& form, const Json& schema)
      : form_(form), schema_(schema), closing_(TrimSpace(form.param_close)) {}

  std::string Write() {
    const auto properties = schema_.find("properties");
    std::string arguments = "arguments ::=";
    if (properties != schema_.end() && properties->is_object()) {
      for (const auto& [name, schema] : properties->items()) {
        // A longer grammar is refused, and the whole schema may be written for each parameter.
        if (arguments.size() > grammar::kMaxGbnfBytes) break;
        const std::string parameter = " " + Parameter(name, schema);
        arguments += IsRequired(schema_, name) ? parameter : " (" + parameter + " )?";
      }
    } else {
      arguments += Format(" ( {} [a-zA-Z0-9_.\\-]+ {} text0 )*", GrammarLiteral(form_.param_open),
                          GrammarLiteral(form_.param_name_end));
    }
    arguments += " " + GrammarLiteral(form_.call_close) + "\n";
    return arguments + TextRules("text", closing_);
  }

 private:
  std::string Parameter(const std::string& name, const Json& schema) const {
    return GrammarLiteral(std::string(form_.param_open) + name +
                          std::string(form_.param_name_end)) +
           " " + Value(name, schema);
  }

  std::string Value(const std::string& name, const Json& schema) const {
    const ParameterKind kind = KindOf(schema, schema_);
    if (kind == ParameterKind::kText && schema.contains("enum")) return Texts(schema["enum"]);
    if (kind != ParameterKind::kValue) return "text0";
    return "%json " + Schema(name, schema) + " " + GrammarLiteral(form_.param_close);
  }

  std::string Texts(const Json& values) const {
    std::string texts = "(";
    for (const Json& value : values) {
      if (!value.is_string()) continue;
      if (texts.size() > 1) texts += " |";
      texts += " " + GrammarLiteral(value.get<std::string>());
    }
    return texts + " ) " + GrammarLiteral(form_.param_close);
  }

  // A schema that refers to others needs the whole document.
  std::string Schema(const std::string& name, const Json& schema) const {
    const std::string text = Written(schema);
    return text.contains("\"$ref\"") ? Written(SchemaOfProperty(schema_, name)) : text;
  }

  const CallForm& form_;
  const Json& schema_;
  const std::string_view closing_;
};

}  // namespace

std::string TaggedRules(const CallForm& form, const Json& schema) {
  return TaggedGrammarWriter(form, schema).Write();
}

}  // namespace cria::server
