#include "cli/input/reasoning.h"

#include "core/format.h"
#include "jinja/json_reader.h"
#include "text/thinking_variables.h"

namespace cria::cli {
namespace {

// The template's variables with reasoning on or off: a JSON object that also has those of
// `variables`, which is another one or "".
Result<std::string> AddThinking(const ChatTemplate& chat_template, bool thinking,
                                std::string_view variables) {
  CRIA_RETURN_IF_ERROR(CheckTemplateVariables(variables));
  const std::string_view name = ThinkingVariable(chat_template);
  if (name.empty()) {
    return Fail(ErrorCode::kUsage,
                Format("this model's chat template cannot turn reasoning on or off: it reads "
                       "neither the variable {} nor {}",
                       kThinkingVariables[0], kThinkingVariables[1]));
  }
  const std::string with = Format("{{\"{}\": {}", name, thinking);
  if (variables.empty()) return with + "}";
  jinja::Limits limits;
  limits.steps += variables.size();
  limits.memory_bytes += 64 * variables.size();
  jinja::Context context(limits, nullptr);
  CRIA_ASSIGN_OR_RETURN(const jinja::Value object, jinja::ReadJson(context, variables));
  if (jinja::Find(object.dict->entries, name) != nullptr) {
    return Fail(ErrorCode::kUsage,
                Format("the variable {} of the chat template is set twice: as itself, and by "
                       "turning reasoning {}; leave one of them out",
                       name, thinking ? "on" : "off"));
  }
  if (object.dict->entries.empty()) return with + "}";
  return Format("{}, {}", with, variables.substr(variables.find('{') + 1));
}

}  // namespace

Result<std::string> VariablesFor(const ChatTemplate& chat_template,
                                 const TemplateOptions& options) {
  // A model that always reasons has no switch, but its reasoning can be hidden.
  const bool sets_variable = options.thinking == Thinking::kHide
                                 ? !ThinkingVariable(chat_template).empty()
                                 : options.thinking != Thinking::kDefault;
  if (!sets_variable) return options.variables;
  return AddThinking(chat_template, options.thinking != Thinking::kOff, options.variables);
}

}  // namespace cria::cli
