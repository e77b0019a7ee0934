#include "server/calls/tool_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/format.h"
#include "messages/calls_as_text.h"
#include "server/requests/messages.h"

namespace cria::server {
namespace {

constexpr std::string_view kHermesOpening = "<tool_call>";
constexpr std::string_view kMistralOpening = "[TOOL_CALLS]";
constexpr std::string_view kGraniteOpening = "<|tool_call|>";
// What templates contain that show one of the known forms. Quotes inside of strings are escaped.
constexpr std::array<std::string_view, 7> kKnownForms = {
    kHermesOpening, kMistralOpening, kGraniteOpening, "functools[",
    "{\"name\"",    "{\\\"name\\\"", "{'name'"};
// XML instead of JSON behind <tool_call>, as Qwen3-Coder and GLM 4.5 write it.
constexpr std::array<std::string_view, 2> kXmlForms = {"<function=", "<arg_key>"};

// A schema inside of a larger document refers to its own parts from the document's root.
void MoveReferences(Json& schema, const std::string& place) {
  if (schema.is_array()) {
    for (Json& item : schema) MoveReferences(item, place);
  }
  if (!schema.is_object()) return;
  for (auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string()) {
      const auto target = value.get<std::string>();
      if (target == "#" || target.starts_with("#/")) value = place + target.substr(1);
    } else {
      MoveReferences(value, place);
    }
  }
}

// Only one tool's schema is a value at a time, because values take much more memory than text.
std::string OneCallSchema(const Tool& tool, std::string_view key, const std::string& place) {
  Json parameters = TryReadJson(tool.parameters).value_or(Json::object());
  MoveReferences(parameters, Format("{}/properties/{}", place, key));
  const std::string name = Written(tool.name);
  return Format(R"({{"type":"object","properties":{{"name":{{"const":{}}},"{}":{}}},)"
                R"("required":["name","{}"],"additionalProperties":false}})",
                name, key, Written(parameters), key);
}

std::string AnyCallSchema(const ToolUse& use, std::string_view key, const std::string& place) {
  if (use.tools.size() == 1) return OneCallSchema(use.tools.front(), key, place);
  std::string schema = R"({"anyOf":[)";
  for (size_t i = 0; i < use.tools.size(); ++i) {
    if (i > 0) schema += ',';
    schema += OneCallSchema(use.tools[i], key, Format("{}/anyOf/{}", place, i));
  }
  return schema + "]}";
}

}  // namespace

bool KnowsTools(const ChatTemplate& chat_template) { return chat_template.Reads("tools"); }

bool KnowsCallForm(const ChatTemplate& chat_template) {
  const std::string_view source = chat_template.source();
  const auto contains_any = [source](std::span<const std::string_view> texts) {
    return std::ranges::any_of(texts, [source](auto text) { return source.contains(text); });
  };
  // Without either, the model is told the form of Hermes (DescribeTools).
  if (!KnowsTools(chat_template) && !source.contains("tool_calls")) return true;
  return contains_any(kKnownForms) && !contains_any(kXmlForms);
}

std::unique_ptr<ToolFormat> FindToolFormat(std::string_view template_source,
                                           bool template_reads_tools) {
  if (!template_reads_tools) {
    auto format = MakeHermesFormat();
    format->template_knows_tools = false;
    return format;
  }
  if (template_source.contains(kMistralOpening)) {
    return template_source.contains("[ARGS]") ? MakeMistralArgumentsFormat() : MakeMistralFormat();
  }
  if (template_source.contains(kGraniteOpening)) return MakeGraniteFormat();
  if (template_source.contains(kHermesOpening)) return MakeHermesFormat();
  return MakeLlamaFormat();
}

void DescribeTools(const ToolUse& use, std::vector<ChatMessage>& messages) {
  WriteCallsAsText(messages, RulesForMessages());
  if (use.definitions.empty()) return;
  std::string text = "You can call these functions. Each is described by a JSON object:\n<tools>\n";
  for (const std::string& definition : use.definitions) text += definition + "\n";
  text +=
      "</tools>\nTo call one, write its name and arguments like this, and nothing else:\n"
      "<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>";
  if (!messages.empty() && messages.front().role == "system") {
    messages.front().content += "\n\n" + text;
  } else {
    messages.insert(messages.begin(), {"system", text});
  }
}

std::string CallSchema(const ToolUse& use, std::string_view arguments_key) {
  return AnyCallSchema(use, arguments_key, "#");
}

std::string CallListSchema(const ToolUse& use, std::string_view arguments_key) {
  return Format(R"({{"type":"array","items":{},"minItems":1{}}})",
                AnyCallSchema(use, arguments_key, "#/items"),
                use.is_parallel ? "" : R"(,"maxItems":1)");
}

Json SchemaOfProperty(const Json& schema, std::string_view name) {
  Json document = schema;
  MoveReferences(document, "#/$defs/arguments");
  const Json::json_pointer place =
      Json::json_pointer("/$defs/arguments/properties") / std::string(name);
  return {{"$ref", "#" + place.to_string()}, {"$defs", {{"arguments", std::move(document)}}}};
}

}  // namespace cria::server
