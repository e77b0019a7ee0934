// Llama 3's calls: {"name": …, "parameters": {…}} is the whole answer, perhaps behind
// <|python_tag|>.

#include "serve/api/tool_format.h"

namespace cria::serve {
namespace {

constexpr std::string_view kParameters = "parameters";

class LlamaFormat final : public ToolFormat {
 public:
  std::string_view opening() const override { return "<|python_tag|>"; }
  bool may_be_bare() const override { return true; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    // Llama's own templates ask for the object alone, and so does a call that is required.
    return CallPart{
        .shape = {AnswerShape::Kind::kJsonSchema, Written(CallSchema(use, kParameters)), "tools"}};
  }

  // Several objects are divided by semicolons or line ends.
  std::optional<std::vector<ToolCall>> Parse(const ToolUse& use,
                                             std::string_view text) const override {
    std::vector<ToolCall> calls;
    while (true) {
      const size_t begin = text.find_first_not_of(" \t\r\n;");
      if (begin == text.npos) break;
      text.remove_prefix(begin);
      const size_t end = EndOfObject(text);
      const auto object = TryReadJson(text.substr(0, end));
      const auto call =
          object ? CallOf(use, *object, kParameters, "arguments") : std::optional<ToolCall>();
      if (!call) return std::nullopt;
      calls.push_back(*call);
      text.remove_prefix(end);
    }
    if (calls.empty()) return std::nullopt;
    return calls;
  }

 private:
  // The length of the object at the beginning of the text; that of the text if there is no end.
  static size_t EndOfObject(std::string_view text) {
    size_t depth = 0;
    bool is_in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (is_in_string) {
        if (c == '\\') ++i;
        if (c == '"') is_in_string = false;
      } else if (c == '"') {
        is_in_string = true;
      } else if (c == '{') {
        ++depth;
      } else if (c == '}' && --depth == 0) {
        return i + 1;
      }
      if (depth == 0 && !is_in_string) return text.size();
    }
    return text.size();
  }
};

}  // namespace

std::unique_ptr<ToolFormat> MakeLlamaFormat() { return std::make_unique<LlamaFormat>(); }

}  // namespace cria::serve
