#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/answers/answer_calls.h"
#include "server/answers/answer_section.h"
#include "server/calls/call_finder.h"
#include "server/calls/harmony.h"

namespace cria::server {

// Text without a constraint: reasoning, an answer, and calls that the model writes of its own
// accord. It ends where arguments of a call begin, or where the reasoning is over and the text must
// match a schema or be a call. If the reasoning has as many tokens as it may have, another free
// section follows.
class FreeSection final : public AnswerSection {
 public:
  // All must outlive the object.
  FreeSection(const AnswerSetup& setup, AnswerForm& form, AnswerCalls& calls,
              AnswerListener& listener);

  void Begin(size_t skipped_bytes) override;
  void TakeToken(TokenLogProbability token) override;
  void CountToken() override;
  SectionKind kind() const override { return SectionKind::kFree; }
  // The text has no more tokens: passes on what was held back.
  void End();

  // Sections that begin from now on have no reasoning.
  void EndReasoning() { has_ended_reasoning_ = true; }
  bool is_in_reasoning() const { return filter_ && filter_->is_in_reasoning(); }
  // How many tokens of reasoning all free sections had.
  size_t num_reasoning_tokens() const { return num_reasoning_tokens_; }
  // Whether the model has opened a call, behind which others write its name.
  bool is_opened() const {
    return finder_ && finder_->is_found() && finder_->found().is_before_name;
  }
  // The form of the call that follows; null: its arguments are JSON.
  const CallForm* call_form() const { return finder_->found().form; }
  // The call whose arguments follow, of which the model has written the name.
  const std::string& call_name() const { return finder_->name(); }
  // What takes the place of the text behind the section's end.
  const std::string& forced() const { return finder_->found().forced; }
  // The next text is behind these arguments, or behind a call that was required.
  void GoToArgumentsEnd() { finder_->GoToArgumentsEnd(); }
  void GoToCallEnd();

 protected:
  void TakeText(std::string_view text) override;

 private:
  void MakeFinder();
  void KeepAnswer(std::string_view text);
  void TakeAnswer();
  void TakeFoundText(std::string_view text);
  bool TakeFoundCall(const ToolCall& call);
  void PassText(std::string_view text);
  void PassPart(AnswerPart part, std::string_view text);
  bool is_over_budget() const;
  // Where the text behind the reasoning begins.
  size_t answer_begin() const { return taken_bytes() - answer_bytes_; }

  const AnswerSetup& setup_;
  AnswerForm& form_;
  AnswerCalls& calls_;
  AnswerListener& listener_;
  std::optional<ReasoningFilter> filter_;  // Nothing: there is no reasoning.
  size_t num_reasoning_tokens_ = 0;
  bool has_ended_reasoning_ = false;
  std::optional<HarmonyText> channels_;  // Nothing: the model has none.
  // Null: there are no tools. It reads all free sections of an answer.
  std::unique_ptr<CallFinder> finder_;
  std::string fresh_answer_;  // Passed on by the filter and not looked at yet.
  size_t answer_bytes_ = 0;   // The length of the text behind the reasoning.
  // What belongs to text that may become a call.
  std::vector<TokenLogProbability> untold_tokens_;
};

}  // namespace cria::server
