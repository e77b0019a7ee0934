#pragma once

#include <string_view>

#include "server/api/answer_calls.h"
#include "server/api/answer_section.h"
#include "server/api/call_reader.h"
#include "server/api/json_scanner.h"

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

// The arguments of a call that the model has begun of its own accord. The section ends where they
// end, perhaps in the middle of a token.
class ArgumentsSection final : public AnswerSection {
 public:
  explicit ArgumentsSection(AnswerCalls& calls) : calls_(calls) {}

  SectionKind kind() const override { return SectionKind::kArguments; }
  // Before the first text of a call's arguments.
  void BeginCall(std::string_view name);

 protected:
  void TakeText(std::string_view text) override;

 private:
  AnswerCalls& calls_;
  JsonScanner scanner_;
};

}  // namespace cria::server
