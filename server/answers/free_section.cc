#include "server/answers/free_section.h"

#include <utility>

#include "server/calls/json_scanner.h"

namespace cria::server {

FreeSection::FreeSection(const AnswerSetup& setup, AnswerForm& form, AnswerCalls& calls,
                         AnswerListener& listener)
    : setup_(setup), form_(form), calls_(calls), listener_(listener) {
  if (!setup_.has_channels) return;
  channels_.emplace([this](AnswerPart part, std::string_view text) { PassPart(part, text); });
}

void FreeSection::Begin(size_t skipped_bytes) {
  AnswerSection::Begin(skipped_bytes);
  untold_tokens_.clear();
  fresh_answer_.clear();
  answer_bytes_ = 0;
  filter_.reset();
  if (!setup_.tags.open.empty() && !has_ended_reasoning_) {
    filter_.emplace(setup_.tags, setup_.begins_in_reasoning && calls_.count() == 0,
                    [this](AnswerPart part, std::string_view text) {
                      if (part == AnswerPart::kReasoning) return listener_.OnText(part, text);
                      KeepAnswer(text);
                    });
  }
  if (form_.tools() != nullptr && !finder_) MakeFinder();
}

// Without a constraint, the finder waits for the ends of calls. An object is never a call if the
// text must match something else.
void FreeSection::MakeFinder() {
  const CallFinder::Options options = {
      .takes_bare = setup_.options.shape.kind == AnswerShape::Kind::kAny,
      .stops_at_arguments = form_.has_constraint(),
      .form = setup_.format != nullptr ? setup_.format->form() : nullptr};
  finder_ = std::make_unique<CallFinder>(
      *form_.tools(), options,
      CallFinder::Listener{
          .on_text = [this](std::string_view text) { TakeFoundText(text); },
          .on_call = [this](const ToolCall& call) { return TakeFoundCall(call); }});
}

void FreeSection::GoToCallEnd() {
  if (!finder_) MakeFinder();
  finder_->GoToCallEnd();
}

// Only the answer's own text has log-probabilities, neither reasoning nor calls.
void FreeSection::TakeToken(TokenLogProbability token) {
  if (is_in_reasoning()) return;
  if (finder_) {
    untold_tokens_.push_back(std::move(token));
  } else {
    listener_.OnToken(std::move(token));
  }
}

void FreeSection::CountToken() {
  const bool is_in_channel = channels_ && channels_->is_in_reasoning();
  if (is_in_reasoning() || is_in_channel) ++num_reasoning_tokens_;
}

bool FreeSection::is_over_budget() const {
  const std::optional<size_t> budget = setup_.options.reasoning_budget;
  return budget && is_in_reasoning() && num_reasoning_tokens_ >= *budget;
}

void FreeSection::TakeText(std::string_view text) {
  if (filter_) {
    filter_->Append(text);
    if (is_over_budget()) return GoTo(SectionKind::kFree, taken_bytes());
  } else {
    KeepAnswer(text);
  }
  if (!fresh_answer_.empty()) TakeAnswer();
}

void FreeSection::KeepAnswer(std::string_view text) {
  fresh_answer_ += text;
  answer_bytes_ += text.size();
}

void FreeSection::TakeAnswer() {
  const std::string text = std::exchange(fresh_answer_, {});
  if (calls_.need() == AnswerNeed::kCall) return GoTo(SectionKind::kCall, answer_begin());
  if (!finder_) {
    if (calls_.need() == AnswerNeed::kShape) return GoTo(SectionKind::kShaped, answer_begin());
    return PassText(text);
  }
  finder_->Append(text);
  if (finder_->is_found() && !has_ended()) {
    GoTo(is_opened() ? SectionKind::kCall : SectionKind::kArguments,
         answer_begin() + finder_->begin());
  }
}

void FreeSection::TakeFoundText(std::string_view text) {
  if (has_ended()) return;
  if (calls_.need() == AnswerNeed::kShape) return GoTo(SectionKind::kShaped, answer_begin());
  PassText(text);
}

bool FreeSection::TakeFoundCall(const ToolCall& call) {
  if (has_ended()) return true;
  if (form_.has_constraint() && !form_.Fits(call)) return false;
  calls_.Begin(call.name);
  calls_.PassArguments(call.arguments);
  if (!calls_.may_go_on()) EndAnswer();
  return true;
}

void FreeSection::PassText(std::string_view text) {
  if (channels_) return channels_->Append(text);
  PassPart(AnswerPart::kAnswer, text);
}

void FreeSection::PassPart(AnswerPart part, std::string_view text) {
  if (calls_.is_behind_call()) text = SkipJsonSpace(text);
  if (text.empty()) return;
  if (form_.tools() != nullptr && form_.tools()->choice == ToolUse::Choice::kRequired) {
    return EndAnswer();
  }
  calls_.GoOnWithText();
  for (TokenLogProbability& token : std::exchange(untold_tokens_, {})) {
    listener_.OnToken(std::move(token));
  }
  listener_.OnText(part, text);
}

void FreeSection::End() {
  if (has_ended()) return;
  if (filter_) filter_->Flush();
  if (!fresh_answer_.empty()) TakeAnswer();
  if (!next() && finder_) finder_->Flush();
  if (!next() && channels_) channels_->Flush();
}

}  // namespace cria::server
