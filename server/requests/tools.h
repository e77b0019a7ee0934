#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/requests/fields.h"
#include "server/requests/json_body.h"

namespace cria::server {

// A function that the model may ask for.
struct Tool {
  std::string name;
  std::string parameters;  // A JSON Schema of an object, as text: values would take more memory.
  bool is_strict = false;  // If the schema cannot be enforced, the request fails.
};

struct ToolUse {
  enum class Choice : uint8_t { kNone, kAuto, kRequired };
  static constexpr size_t kMaxTools = 128;

  Choice choice = Choice::kNone;
  bool is_parallel = true;               // Several calls in one answer.
  std::vector<Tool> tools;               // The tools that may be called.
  std::vector<std::string> definitions;  // The JSON of each as it was sent, for the template.

  bool may_call() const { return choice != Choice::kNone && !tools.empty(); }
};

// What a schema that cannot be enforced becomes.
inline constexpr const char* kAnyObjectSchema = R"({"type":"object"})";

// Whether the name of a tool may have the character.
bool IsToolNameCharacter(char c);

// Where a function's name and schema are.
enum class ToolForm : uint8_t {
  kNested,  // In an object `function`, as chat completions and ollama have them.
  kFlat,    // Beside `type`, as responses have them.
};

// Reads OpenAI's `tools`, `tool_choice` and `parallel_tool_calls`; ollama has only the first.
ToolUse ReadTools(const Fields& request, ToolForm form = ToolForm::kNested);

// What other APIs' tools are read with, too. Reads a function's name, description and `strict`; its
// schema is the field `schema_name`.
Tool ReadFunction(const Fields& function, std::string_view schema_name);
// Adds a tool, whose definition in OpenAI's form is shown to the template. `name_path` is that of
// its name in the request. Refuses more tools than there may be, and a name that is there already.
void AddTool(ToolUse& use, Tool tool, const Json& definition, const std::string& name_path);
// The model must call this tool, which the field names.
void RequireTool(ToolUse& use, const std::string& name, const std::string& path);
// Ends reading tools: a model that must not call anything is not told what it could call.
void ForgetUnusedTools(ToolUse& use);

// A call that the model has made.
struct ToolCall {
  std::string name;
  std::string arguments;  // JSON.
};

// An id of nine letters and digits, the only form that every template accepts.
std::string NewCallId();

}  // namespace cria::server
