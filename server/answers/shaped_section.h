#pragma once

#include <string_view>
#include <utility>

#include "server/answers/answer_section.h"

namespace cria::server {

// An answer that matches what the request says.
class ShapedSection final : public AnswerSection {
 public:
  explicit ShapedSection(AnswerListener& listener) : listener_(listener) {}

  void TakeToken(TokenLogProbability token) override { listener_.OnToken(std::move(token)); }
  SectionKind kind() const override { return SectionKind::kShaped; }

 protected:
  void TakeText(std::string_view text) override { listener_.OnText(AnswerPart::kAnswer, text); }

 private:
  AnswerListener& listener_;
};

}  // namespace cria::server
