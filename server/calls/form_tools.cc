// Calls in the form of a row of CallForms().

#include "server/calls/argument_grammar.h"
#include "server/calls/tool_format.h"

namespace cria::server {
namespace {

class FormFormat final : public ToolFormat {
 public:
  explicit FormFormat(const CallForm& form) : form_(form) {}

  const CallForm* form() const override { return &form_; }
  bool goes_on() const override { return true; }
  // The arguments of the other styles end with what closes the call.
  std::string_view closing() const override { return form_.has_braces() ? form_.call_close : ""; }

  std::optional<CallPart> NextPart(const ToolUse& use,
                                   std::span<const std::string> texts) const override {
    if (!texts.empty()) return std::nullopt;
    return CallPart{.forced = form_.Opening(),
                    .content = CallPart::Content::kName,
                    .shape = {AnswerShape::Kind::kGrammar, NameGrammar(use), "tools"}};
  }

 private:
  const CallForm& form_;
};

}  // namespace

std::unique_ptr<ToolFormat> MakeFormFormat(const CallForm& form) {
  return std::make_unique<FormFormat>(form);
}

}  // namespace cria::server
