#pragma once

#include <memory>
#include <string_view>

#include "server/answers/answer_calls.h"
#include "server/answers/answer_section.h"
#include "server/calls/argument_reader.h"
#include "server/calls/call_reader.h"

namespace cria::server {

// A part of a call that is required, in the form of the template.
class CallSection final : public AnswerSection {
 public:
  explicit CallSection(AnswerCalls& calls);

  SectionKind kind() const override { return SectionKind::kCall; }
  void BeginPart(CallPart::Content content) { reader_.Begin(content); }
  void EndPart() { reader_.End(); }

 protected:
  void TakeText(std::string_view text) override { reader_.Append(text); }

 private:
  CallReader reader_;
};

// The arguments of a call whose name is known. The section ends where they end, perhaps in the
// middle of a token.
class ArgumentsSection final : public AnswerSection {
 public:
  explicit ArgumentsSection(AnswerCalls& calls) : calls_(calls) {}

  SectionKind kind() const override { return SectionKind::kArguments; }
  // Before the first text of a call's arguments, in a form; null: they are JSON. Both must outlive
  // the section.
  void BeginCall(const Tool& tool, const CallForm* form);

 protected:
  void TakeText(std::string_view text) override;

 private:
  AnswerCalls& calls_;
  std::unique_ptr<ArgumentReader> reader_;
};

}  // namespace cria::server
