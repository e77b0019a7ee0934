#include "server/requests/anthropic_request.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "server/requests/answer_format.h"
#include "server/requests/chat_request.h"
#include "server/requests/conversation_builder.h"
#include "server/requests/json_bounds.h"
#include "server/requests/messages.h"
#include "server/requests/request_error.h"
#include "server/requests/sampling_fields.h"
#include "server/requests/thinking_fields.h"
#include "server/requests/tools.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

[[noreturn]] void RefuseBlock(const Fields& block, const std::string& type,
                              std::string_view supported) {
  RefuseField(block.PathOf("type"), Format("is \"{}\", but must be {} here", type, supported),
              "unsupported_content");
}

// Reads messages one after the other; results have the names of the calls before them.
class TurnReader {
 public:
  std::vector<ChatMessage> Read(const Json& list) {
    size_t index = 0;
    for (const Json& message : list) {
      const Fields fields(message, Format("messages[{}]", index++));
      const std::string role = fields.RequiredString("role");
      const Json* const content = fields.Find("content");
      if (content == nullptr) RefuseField(fields.PathOf("content"), "is missing");
      if (role == "user") {
        ReadUser(fields, *content);
      } else if (role == "assistant") {
        ReadAssistant(fields, *content);
      } else {
        RefuseField(fields.PathOf("role"),
                    Format("is \"{}\", but must be user or assistant", role));
      }
    }
    return turns_.Take();
  }

 private:
  static void CheckList(const Fields& message, const Json& content) {
    if (!content.is_array()) {
      RefuseField(message.PathOf("content"), "is neither a string nor a list of blocks");
    }
  }
  static Fields BlockOf(const Fields& message, const Json& block, size_t index) {
    return Fields(block, Format("{}[{}]", message.PathOf("content"), index));
  }

  void ReadUser(const Fields& message, const Json& content) {
    if (content.is_string()) return turns_.Add({"user", content.get<std::string>()});
    CheckList(message, content);
    std::string text;
    bool has_text = content.empty();
    size_t index = 0;
    for (const Json& value : content) {
      const Fields block = BlockOf(message, value, index++);
      const std::string type = block.RequiredString("type");
      if (type == "tool_result") {
        ReadResult(block);
      } else if (type == "text") {
        text += block.RequiredString("text");
        has_text = true;
      } else {
        RefuseBlock(block, type, "text or tool_result");
      }
    }
    if (has_text) turns_.Add({"user", std::move(text)});
  }

  void ReadResult(const Fields& block) {
    const std::string id = block.RequiredString("tool_use_id");
    // Templates have no word for an error: the content says it.
    static_cast<void>(block.Bool("is_error"));
    turns_.AddResult(id, ReadContent(block, "content"));
  }

  void ReadAssistant(const Fields& message, const Json& content) {
    if (content.is_string()) return turns_.Add({"assistant", content.get<std::string>()});
    CheckList(message, content);
    std::string text;
    std::string reasoning;
    Json calls = Json::array();
    size_t index = 0;
    for (const Json& value : content) {
      const Fields block = BlockOf(message, value, index++);
      const std::string type = block.RequiredString("type");
      if (type == "text") {
        text += block.RequiredString("text");
      } else if (type == "thinking") {
        reasoning += block.RequiredString("thinking");
      } else if (type == "tool_use") {
        calls.push_back(ReadCall(block));
      } else {
        RefuseBlock(block, type, "text, thinking or tool_use");
      }
    }
    turns_.AddAnswer(std::move(text), reasoning, std::move(calls));
  }

  Json ReadCall(const Fields& block) {
    std::string id = block.RequiredString("id");
    std::string name = block.RequiredString("name");
    const std::optional<Fields> input = block.Object("input");
    return turns_.CallOf(std::move(id), std::move(name), input ? input->json() : Json::object());
  }

  ConversationBuilder turns_{"messages"};
};

void ReadToolChoice(ToolUse& use, const Fields& request) {
  use.choice = use.tools.empty() ? ToolUse::Choice::kNone : ToolUse::Choice::kAuto;
  const std::optional<Fields> choice = request.Object("tool_choice");
  if (!choice) return;
  use.is_parallel = !choice->Bool("disable_parallel_tool_use").value_or(false);
  const std::string type = choice->RequiredString("type");
  if (type == "none") {
    use.choice = ToolUse::Choice::kNone;
  } else if (type == "any") {
    if (use.tools.empty()) {
      RefuseField(choice->PathOf("type"), "requires a call, but there are no tools");
    }
    use.choice = ToolUse::Choice::kRequired;
  } else if (type == "tool") {
    RequireTool(use, choice->RequiredString("name"), choice->PathOf("name"));
  } else if (type != "auto") {
    RefuseField(choice->PathOf("type"), R"(is not "auto", "any", "tool" or "none")");
  }
}

ToolUse ReadAnthropicTools(const Fields& request) {
  ToolUse use;
  if (const Json* const tools = request.List("tools")) {
    for (const Json& value : *tools) {
      const Fields fields(value, Format("tools[{}]", use.tools.size()));
      const std::string type = fields.String("type").value_or("custom");
      if (type != "custom") {
        RefuseField(fields.PathOf("type"),
                    Format("is \"{}\", but only tools of the client are supported", type),
                    "unsupported_parameter");
      }
      Json function = {{"name", fields.RequiredString("name")}};
      if (const auto description = fields.String("description")) {
        function["description"] = *description;
      }
      const Json* const schema = fields.Find("input_schema");
      if (schema == nullptr) RefuseField(fields.PathOf("input_schema"), "is missing");
      function["parameters"] = *schema;
      AddTool(use, ReadFunction(fields, "input_schema"),
              {{"type", "function"}, {"function", std::move(function)}}, fields.PathOf("name"));
    }
  }
  ReadToolChoice(use, request);
  ForgetUnusedTools(use);
  return use;
}

// {"type": "enabled", "budget_tokens": 1024} or {"type": "disabled"}.
void ReadThinkingObject(const Engine& engine, const Fields& request, ChatRequest& read) {
  const std::optional<Fields> thinking = request.Object("thinking");
  if (!thinking) return;
  const std::string type = thinking->RequiredString("type");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    RefuseField(thinking->PathOf("type"), R"(is not "enabled", "adaptive" or "disabled")");
  }
  if (const auto budget = thinking->Integer("budget_tokens", 1)) {
    read.options.reasoning_budget = static_cast<size_t>(*budget);
  }
  // Whether there is reasoning is then the template's choice.
  if (type == "adaptive") return;
  SetThinking(engine.chat_template(), type == "enabled", thinking->PathOf("type"), read);
}

// {"format": {"type": "json_schema", "schema": {…}}}
void ReadOutputFormat(const Fields& request, AnswerOptions& options) {
  const std::optional<Fields> config = request.Object("output_config");
  if (!config) return;
  config->Unsupported("effort", {}, "is not supported; use thinking");
  const std::optional<Fields> format = config->Object("format");
  if (!format) return;
  if (format->RequiredString("type") != "json_schema") {
    RefuseField(format->PathOf("type"), R"(is not "json_schema")");
  }
  const std::optional<Fields> schema = format->Object("schema");
  if (!schema) RefuseField(format->PathOf("schema"), "is missing");
  options.shape = ShapeOfSchema(schema->json(), schema->path());
}

}  // namespace

std::vector<ChatMessage> ReadAnthropicTurns(const Fields& request) {
  const Json* const list = request.List("messages");
  if (list == nullptr) RefuseField("messages", "is missing");
  if (list->empty()) RefuseField("messages", "is empty: there is nothing to answer");
  if (list->size() > kMaxMessages) {
    RefuseField("messages", Format("has more than {} messages", kMaxMessages));
  }
  return TurnReader().Read(*list);
}

ChatRequest ReadAnthropicMessages(const Engine& engine, const Fields& request, bool generates) {
  RefuseUnsupportedInAnthropic(request);
  static_cast<void>(request.String("model"));
  ChatRequest read;
  if (std::string system = ReadContent(request, "system"); !system.empty()) {
    read.messages.push_back({"system", std::move(system)});
  }
  std::ranges::move(ReadAnthropicTurns(request), std::back_inserter(read.messages));
  read.options.sampler = ReadSampler(request);
  read.options.stop = ReadStop(request, "stop_sequences");
  if (generates && !request.Has("max_tokens")) RefuseField("max_tokens", "is missing");
  read.options.max_tokens = ReadMaxTokens(request, "max_tokens");
  read.tools = ReadAnthropicTools(request);
  ReadOutputFormat(request, read.options);
  ReadThinkingObject(engine, request, read);
  const ChatMessage& last = read.messages.back();
  read.continues_last = last.role == "assistant";
  if (read.continues_last) {
    CheckContinues(last, Format("messages[{}]", request.List("messages")->size() - 1));
  }
  return read;
}

}  // namespace cria::server
