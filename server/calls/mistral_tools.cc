// Calls in a list behind an opening, which Mistral, Granite and Phi write:
// [TOOL_CALLS][{"name": …, "arguments": {…}}, …]; and Mistral's newer form
// [TOOL_CALLS]name[ARGS]{…}, which may be repeated.

#include <algorithm>

#include "server/calls/argument_grammar.h"
#include "server/calls/tool_format.h"

namespace cria::server {
namespace {

constexpr std::string_view kToolCalls = "[TOOL_CALLS]";
constexpr std::string_view kArgs = "[ARGS]";

class ListFormat final : public ToolFormat {
 public:
  explicit ListFormat(std::string_view opening) : opening_(opening) {}

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    return CallPart{
        .forced = opening_,
        .shape = {AnswerShape::Kind::kJsonSchema, CallListSchema(use, "arguments"), "tools"}};
  }

 private:
  const std::string opening_;
};

class MistralArgumentsFormat final : public ToolFormat {
 public:
  bool goes_on() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (texts.size() == 2) return std::nullopt;
    if (texts.empty()) {
      return CallPart{.forced = std::string(kToolCalls),
                      .content = CallPart::Content::kName,
                      .shape = {AnswerShape::Kind::kGrammar, NameGrammar(use), "tools"}};
    }
    const auto tool = std::ranges::find(use.tools, texts.front(), &Tool::name);
    if (tool == use.tools.end()) return std::nullopt;
    return CallPart{.forced = std::string(kArgs),
                    .content = CallPart::Content::kArguments,
                    .shape = {AnswerShape::Kind::kJsonSchema, tool->parameters, "tools"}};
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeMistralFormat() { return std::make_unique<ListFormat>(kToolCalls); }

std::unique_ptr<ToolFormat> MakeGraniteFormat() {
  return std::make_unique<ListFormat>("<|tool_call|>");
}

std::unique_ptr<ToolFormat> MakeMistralArgumentsFormat() {
  return std::make_unique<MistralArgumentsFormat>();
}

}  // namespace cria::server
