// Mistral's calls: [TOOL_CALLS][{"name": …, "arguments": {…}}, …], and the newer form
// [TOOL_CALLS]name[ARGS]{…}, which may be repeated.

#include <algorithm>

#include "serve/api/tool_format.h"

namespace cria::serve {
namespace {

constexpr std::string_view kToolCalls = "[TOOL_CALLS]";
constexpr std::string_view kArgs = "[ARGS]";

class MistralFormat final : public ToolFormat {
 public:
  std::string_view opening() const override { return kToolCalls; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    return CallPart{.forced = std::string(kToolCalls),
                    .shape = {AnswerShape::Kind::kJsonSchema,
                              Written(CallListSchema(use, "arguments")), "tools"}};
  }

  std::optional<std::vector<ToolCall>> Parse(const ToolUse& use,
                                             std::string_view text) const override {
    const auto list = TryReadJson(text);
    if (!list || !list->is_array() || list->empty()) return std::nullopt;
    std::vector<ToolCall> calls;
    for (const Json& object : *list) {
      const auto call = CallOf(use, object, "arguments", "parameters");
      if (!call) return std::nullopt;
      calls.push_back(*call);
    }
    return calls;
  }
};

// A grammar of the tools' names.
std::string NamesGrammar(const ToolUse& use) {
  std::string grammar = "root ::= ";
  for (const Tool& tool : use.tools) {
    if (&tool != &use.tools.front()) grammar += " | ";
    // ReadTools allows no character that would have to be escaped.
    grammar += '"' + tool.name + '"';
  }
  return grammar + "\n";
}

class MistralArgumentsFormat final : public ToolFormat {
 public:
  std::string_view opening() const override { return kToolCalls; }
  bool goes_on() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (texts.size() == 2) return std::nullopt;
    if (texts.empty()) {
      return CallPart{.forced = std::string(kToolCalls),
                      .content = CallPart::Content::kName,
                      .shape = {AnswerShape::Kind::kGrammar, NamesGrammar(use), "tools"}};
    }
    const auto tool = std::ranges::find(use.tools, texts.front(), &Tool::name);
    if (tool == use.tools.end()) return std::nullopt;
    return CallPart{.forced = std::string(kArgs),
                    .content = CallPart::Content::kArguments,
                    .shape = {AnswerShape::Kind::kJsonSchema, Written(tool->parameters), "tools"}};
  }

  std::optional<std::vector<ToolCall>> Parse(const ToolUse& use,
                                             std::string_view text) const override {
    std::vector<ToolCall> calls;
    while (true) {
      const size_t arguments = text.find(kArgs);
      if (arguments == text.npos) return std::nullopt;
      // A call's id may stand between the name and the arguments.
      const std::string_view name = text.substr(0, std::min(arguments, text.find("[CALL_ID]")));
      const size_t next = text.find(kToolCalls, arguments);
      const size_t begin = arguments + kArgs.size();
      const auto object =
          TryReadJson(text.substr(begin, next == text.npos ? text.npos : next - begin));
      if (!object || !object->is_object() || !std::ranges::contains(use.tools, name, &Tool::name)) {
        return std::nullopt;
      }
      calls.push_back({std::string(name), Written(*object)});
      if (next == text.npos) return calls;
      text.remove_prefix(next + kToolCalls.size());
    }
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeMistralFormat() { return std::make_unique<MistralFormat>(); }

std::unique_ptr<ToolFormat> MakeMistralArgumentsFormat() {
  return std::make_unique<MistralArgumentsFormat>();
}

}  // namespace cria::serve
