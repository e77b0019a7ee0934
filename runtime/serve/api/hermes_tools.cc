// Hermes' and Qwen's calls: <tool_call> {"name": …, "arguments": {…}} </tool_call>, one after the
// other, perhaps after text.

#include "serve/api/tool_format.h"

namespace cria::serve {
namespace {

constexpr std::string_view kOpenCall = "<tool_call>";
constexpr std::string_view kCloseCall = "</tool_call>";

class HermesFormat final : public ToolFormat {
 public:
  std::string_view opening() const override { return kOpenCall; }
  std::string_view closing() const override { return "\n</tool_call>"; }
  bool goes_on() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    return CallPart{
        .forced = "<tool_call>\n",
        .shape = {AnswerShape::Kind::kJsonSchema, Written(CallSchema(use, "arguments")), "tools"}};
  }

  std::optional<std::vector<ToolCall>> Parse(const ToolUse& use,
                                             std::string_view text) const override {
    std::vector<ToolCall> calls;
    while (true) {
      const size_t end = text.find(kCloseCall);
      const auto object = TryReadJson(text.substr(0, end));
      const auto call =
          object ? CallOf(use, *object, "arguments", "parameters") : std::optional<ToolCall>();
      if (!call) return std::nullopt;
      calls.push_back(*call);
      const size_t next = end == text.npos ? text.npos : text.find(kOpenCall, end);
      if (next == text.npos) return calls;
      text.remove_prefix(next + kOpenCall.size());
    }
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeHermesFormat() { return std::make_unique<HermesFormat>(); }

}  // namespace cria::serve
