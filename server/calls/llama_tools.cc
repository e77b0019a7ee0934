// Llama 3's calls: {"name": …, "parameters": {…}}, perhaps behind <|python_tag|>, and others behind
// it.

#include "server/calls/tool_format.h"

namespace cria::server {
namespace {

class LlamaFormat final : public ToolFormat {
 public:
  bool goes_on() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    // Llama's own templates ask for the object alone, and so does a call that is required.
    return CallPart{
        .shape = {AnswerShape::Kind::kJsonSchema, CallSchema(use, "parameters"), "tools"}};
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeLlamaFormat() { return std::make_unique<LlamaFormat>(); }

}  // namespace cria::server
