// Hermes' and Qwen's calls: <tool_call> {"name": …, "arguments": {…}} </tool_call>, one after the
// other, perhaps after text.

#include "server/calls/tool_format.h"

namespace cria::server {
namespace {

class HermesFormat final : public ToolFormat {
 public:
  std::string_view closing() const override { return "\n</tool_call>"; }
  bool goes_on() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    return CallPart{
        .forced = "<tool_call>\n",
        .shape = {AnswerShape::Kind::kJsonSchema, CallSchema(use, "arguments"), "tools"}};
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeHermesFormat() { return std::make_unique<HermesFormat>(); }

}  // namespace cria::server
