#pragma once

#include <optional>
#include <string>

#include "llm/generator.h"
#include "llm/turn.h"
#include "server/answers/answer_calls.h"
#include "server/answers/answer_form.h"
#include "server/answers/answer_listener.h"
#include "server/answers/answer_setup.h"
#include "server/answers/answer_text.h"
#include "server/answers/call_section.h"
#include "server/answers/free_section.h"
#include "server/answers/shaped_section.h"

namespace cria::server {

// Generates one answer: text, which may begin with reasoning, calls of tools, or text that matches
// a schema.
//
// The runtime's constraints hold from the first token of a generation, so the answer is generated
// in sections. The first one is free, unless the answer's form is certain from its beginning. As
// soon as it shows that the arguments of a call begin, or that the reasoning is over and the text
// must match a schema or be a call, it ends; its last tokens are taken back as far as they belong
// to the next section, which is constrained. What follows a call is free again, but for an answer
// that must be calls: that one ends with text that is none.
class AnswerRun {
 public:
  // Throws RequestError. Both must outlive the object.
  AnswerRun(const AnswerSetup& setup, AnswerListener& listener);
  AnswerRun(const AnswerRun&) = delete;
  AnswerRun& operator=(const AnswerRun&) = delete;

  // Throws RequestError. After the first event, only if the runtime fails.
  AnswerEnd Run();

 private:
  TurnOptions OptionsOfTurn() const;
  SectionBegin FirstSection() const;
  StopReason RunSections();
  // Each runs a section and says why the answer ended there; nothing: next_ follows.
  std::optional<StopReason> RunFree(const SectionBegin& begin);
  std::optional<StopReason> RunShaped(const SectionBegin& begin);
  std::optional<StopReason> RunCall(const SectionBegin& begin);
  std::optional<StopReason> RunFormCall(const SectionBegin& begin, const CallForm& form);
  std::optional<StopReason> RunArguments(const SectionBegin& begin);
  // What begins a message of Harmony at a place of the last section's text.
  std::string BeginOfMessage(size_t at) const;
  // Ends the reasoning; returns the text that does.
  std::string EndOfReasoning();
  // Whether the answer goes on behind a call that was required.
  bool may_call_again() const;
  FinishReason ReasonOf(StopReason reason) const;

  const AnswerSetup& setup_;
  AnswerListener& listener_;
  AnswerText text_;
  AnswerForm form_;
  AnswerCalls calls_;
  FreeSection free_;
  ShapedSection shaped_;
  CallSection call_;
  ArgumentsSection arguments_;
  SectionBegin next_;
};

}  // namespace cria::server
