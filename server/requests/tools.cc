#include "server/requests/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/format.h"
#include "messages/json_text.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"
#include "server/requests/unique_id.h"

namespace cria::server {
namespace {

// OpenAI's names have 64 characters at most. Those of ours are also what a grammar has as a
// literal.
bool IsToolName(std::string_view name) {
  constexpr size_t kMaxBytes = 128;
  return !name.empty() && name.size() <= kMaxBytes &&
         std::ranges::all_of(name, IsToolNameCharacter);
}

// The object that has a function's name. Refuses other types of tools.
Fields FunctionOf(const Fields& tool, ToolForm form) {
  const std::string type = tool.String("type").value_or("function");
  if (type != "function") {
    RefuseField(tool.PathOf("type"), Format("is \"{}\", but only \"function\" is supported", type),
                "unsupported_parameter");
  }
  if (form == ToolForm::kFlat) return tool;
  const std::optional<Fields> function = tool.Object("function");
  if (!function) RefuseField(tool.PathOf("function"), "is missing");
  return *function;
}

// A tool as chat templates know it.
Json NestedDefinition(const Json& tool, ToolForm form) {
  if (form == ToolForm::kNested) return tool;
  Json function = tool;
  function.erase("type");
  return {{"type", "function"}, {"function", std::move(function)}};
}

void CheckIsTool(const ToolUse& use, const std::string& name, const std::string& path) {
  if (!std::ranges::contains(use.tools, name, &Tool::name)) {
    RefuseField(path, Format("is \"{}\", which is none of the tools", name));
  }
}

// The name in {"type": "function", "function": {"name": …}}; it is one of the tools.
std::string ChosenName(const ToolUse& use, const Fields& choice, ToolForm form) {
  const Fields function = FunctionOf(choice, form);
  const std::string name = function.RequiredString("name");
  CheckIsTool(use, name, function.PathOf("name"));
  return name;
}

// Only these tools may be called, but the model is told of all.
void KeepTools(ToolUse& use, const std::vector<std::string>& names) {
  std::erase_if(use.tools,
                [&](const Tool& tool) { return !std::ranges::contains(names, tool.name); });
}

// Reads {"mode": "auto" or "required", "tools": […]}.
void AllowTools(ToolUse& use, const Fields& choice, ToolForm form) {
  const std::optional<Fields> allowed =
      form == ToolForm::kFlat ? choice : choice.Object("allowed_tools");
  if (!allowed) RefuseField(choice.PathOf("allowed_tools"), "is missing");
  const std::string mode = allowed->RequiredString("mode");
  if (mode != "auto" && mode != "required") {
    RefuseField(allowed->PathOf("mode"), R"(is not "auto" or "required")");
  }
  const Json* const list = allowed->List("tools");
  if (list == nullptr || list->empty()) RefuseField(allowed->PathOf("tools"), "has no tools");
  if (list->size() > ToolUse::kMaxTools) {
    RefuseField(allowed->PathOf("tools"), Format("has more than {} tools", ToolUse::kMaxTools));
  }
  std::vector<std::string> names;
  names.reserve(list->size());
  for (const Json& tool : *list) {
    const std::string path = Format("{}[{}]", allowed->PathOf("tools"), names.size());
    names.push_back(ChosenName(use, Fields(tool, path), form));
  }
  KeepTools(use, names);
  if (mode == "required") use.choice = ToolUse::Choice::kRequired;
}

void ChooseTools(ToolUse& use, const Fields& choice, ToolForm form) {
  if (choice.String("type").value_or("function") == "allowed_tools") {
    return AllowTools(use, choice, form);
  }
  KeepTools(use, {ChosenName(use, choice, form)});
  use.choice = ToolUse::Choice::kRequired;
  use.is_parallel = false;
}

void ReadChoice(ToolUse& use, const Fields& request, ToolForm form) {
  const Json* const choice = request.Find("tool_choice");
  use.choice = use.tools.empty() ? ToolUse::Choice::kNone : ToolUse::Choice::kAuto;
  if (choice == nullptr) return;
  if (choice->is_object()) {
    return ChooseTools(use, Fields(*choice, request.PathOf("tool_choice")), form);
  }
  const std::string name = choice->is_string() ? choice->get<std::string>() : std::string();
  if (name == "none") {
    use.choice = ToolUse::Choice::kNone;
  } else if (name == "required" || name == "any") {
    if (use.tools.empty()) RefuseField("tool_choice", "requires a call, but there are no tools");
    use.choice = ToolUse::Choice::kRequired;
  } else if (name != "auto") {
    RefuseField("tool_choice", R"(is not "none", "auto", "required" or an object with a function)");
  }
}

}  // namespace

bool IsToolNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '/';
}

Tool ReadFunction(const Fields& function, std::string_view schema_name) {
  Tool tool = {.name = function.RequiredString("name")};
  if (!IsToolName(tool.name)) {
    RefuseField(function.PathOf("name"), "must have 1 to 128 letters, digits or any of _ - . : /");
  }
  static_cast<void>(function.String("description"));
  const std::optional<Fields> parameters = function.Object(schema_name);
  const bool is_large = parameters && CountValues(parameters->json()) > kMaxToolValues;
  Json schema = parameters && !is_large ? parameters->json() : Json::object();
  // Without parameters, the arguments are an empty object.
  if (schema.empty() && !is_large) {
    schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }
  // Arguments are always an object.
  if (parameters && parameters->json().value("type", Json("object")) != Json("object")) {
    RefuseField(parameters->PathOf("type"), "is not \"object\"");
  }
  schema["type"] = "object";
  tool.is_strict = function.Bool("strict").value_or(false);
  if (is_large && tool.is_strict) {
    RefuseField(parameters->path(),
                Format("has more than {} values, which cannot be enforced", kMaxToolValues));
  }
  tool.parameters = is_large ? kAnyObjectSchema : Written(schema);
  return tool;
}

void AddTool(ToolUse& use, Tool tool, const Json& definition, const std::string& name_path) {
  if (use.tools.size() == ToolUse::kMaxTools) {
    RefuseField("tools", Format("has more than {} tools", ToolUse::kMaxTools));
  }
  if (std::ranges::contains(use.tools, tool.name, &Tool::name)) {
    RefuseField(name_path, Format("\"{}\" is there twice", tool.name));
  }
  use.tools.push_back(std::move(tool));
  use.definitions.push_back(Written(definition));
}

void RequireTool(ToolUse& use, const std::string& name, const std::string& path) {
  CheckIsTool(use, name, path);
  KeepTools(use, {name});
  use.choice = ToolUse::Choice::kRequired;
  use.is_parallel = false;
}

void ForgetUnusedTools(ToolUse& use) {
  if (use.choice == ToolUse::Choice::kNone) use.definitions.clear();
}

ToolUse ReadTools(const Fields& request, ToolForm form) {
  ToolUse use;
  use.is_parallel = request.Bool("parallel_tool_calls").value_or(true);
  if (const Json* const tools = request.List("tools")) {
    for (const Json& definition : *tools) {
      const Fields tool(definition, Format("tools[{}]", use.tools.size()));
      const Fields function = FunctionOf(tool, form);
      AddTool(use, ReadFunction(function, "parameters"), NestedDefinition(definition, form),
              function.PathOf("name"));
    }
  }
  ReadChoice(use, request, form);
  ForgetUnusedTools(use);
  return use;
}

std::string NewCallId() { return UniqueId(9); }

}  // namespace cria::server
