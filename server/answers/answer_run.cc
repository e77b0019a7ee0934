#include "server/answers/answer_run.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "server/calls/harmony.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// Whether the last token that was allowed has completed the text: then nothing is cut off.
bool IsCompleted(StopReason reason, const AnswerShape& shape, std::string_view text) {
  const bool is_json =
      shape.kind == AnswerShape::Kind::kJsonObject || shape.kind == AnswerShape::Kind::kJsonSchema;
  return reason == StopReason::kMaxTokens && is_json && Json::accept(text);
}

bool IsCutOff(StopReason reason) {
  return reason == StopReason::kMaxTokens || reason == StopReason::kContextFull;
}

}  // namespace

AnswerRun::AnswerRun(const AnswerSetup& setup, AnswerListener& listener)
    : setup_(setup),
      listener_(listener),
      text_(setup, listener),
      form_(setup),
      calls_(form_, listener, [this] { return text_.is_full(); }),
      free_(setup, form_, calls_, listener),
      shaped_(listener),
      call_(calls_),
      arguments_(calls_),
      next_(FirstSection()) {}

SectionBegin AnswerRun::FirstSection() const {
  if (setup_.may_reason) return {};
  if (form_.need() == AnswerNeed::kCall) return {.kind = SectionKind::kCall};
  const bool is_shaped = form_.need() == AnswerNeed::kShape && form_.tools() == nullptr;
  return {.kind = is_shaped ? SectionKind::kShaped : SectionKind::kFree};
}

TurnOptions AnswerRun::OptionsOfTurn() const {
  // What is generated beyond a session's share would have to be set aside for it alone.
  constexpr size_t kForcedTokens = 64;
  const size_t max_tokens = setup_.options.max_tokens;
  const size_t wanted = max_tokens + kForcedTokens;
  const bool fits =
      max_tokens != 0 && setup_.prompt.size() + wanted <= setup_.session.share_tokens();
  return {.max_tokens = fits ? wanted : 0, .cancel = setup_.cancel};
}

AnswerEnd AnswerRun::Run() {
  using Clock = std::chrono::steady_clock;
  Turn turn(setup_.session, OptionsOfTurn());
  AnswerEnd end = {.prompt_tokens = setup_.prompt.size()};
  const Clock::time_point begin = Clock::now();
  std::optional<StopReason> reason = text_.Begin(turn);
  const Clock::time_point read = Clock::now();
  const SessionStats& stats = setup_.session.stats();
  end.cached_tokens = stats.reused_tokens;
  if (!reason) {
    listener_.OnPrompt(end.prompt_tokens, end.cached_tokens);
    reason = RunSections();
  }
  end.prompt_time = read - begin;
  end.completion_time = Clock::now() - read;
  // Text that is forced around calls may go beyond what was asked for, and is not the model's.
  const size_t max_tokens = setup_.options.max_tokens;
  const size_t num_tokens = text_.num_tokens();
  end.completion_tokens = max_tokens == 0 ? num_tokens : std::min(num_tokens, max_tokens);
  end.reasoning_tokens = std::min(free_.num_reasoning_tokens(), end.completion_tokens);
  end.drafted_tokens = stats.drafted_tokens;
  end.accepted_tokens = stats.accepted_tokens;
  end.reason = ReasonOf(*reason);
  end.stop_string = text_.stop_string();
  return end;
}

FinishReason AnswerRun::ReasonOf(StopReason reason) const {
  if (reason == StopReason::kCancelled) return FinishReason::kCancelled;
  // Nothing is cut off if the answer went on behind its calls and had no more text yet.
  const bool has_only_calls = text_.section() == &free_ && calls_.is_behind_call();
  if (!has_only_calls && IsCutOff(reason)) return FinishReason::kLength;
  return calls_.count() > 0 ? FinishReason::kToolCalls : FinishReason::kStop;
}

std::string AnswerRun::EndOfReasoning() {
  free_.EndReasoning();
  return std::string(setup_.tags.close) + "\n\n";
}

StopReason AnswerRun::RunSections() {
  const bool may_not_reason = setup_.options.reasoning_budget == size_t{0};
  if (setup_.begins_in_reasoning && may_not_reason) next_.forced = EndOfReasoning();
  while (true) {
    const SectionBegin begin = std::exchange(next_, {});
    const std::optional<StopReason> reason = begin.kind == SectionKind::kFree     ? RunFree(begin)
                                             : begin.kind == SectionKind::kShaped ? RunShaped(begin)
                                             : begin.kind == SectionKind::kCall
                                                 ? RunCall(begin)
                                                 : RunArguments(begin);
    if (reason) return *reason;
  }
}

std::optional<StopReason> AnswerRun::RunFree(const SectionBegin& begin) {
  if (!begin.is_written) {
    if (const auto ended = text_.MoveTo(begin.at, begin.forced)) return ended;
  }
  const StopReason reason =
      begin.is_written ? text_.GenerateFrom(begin.at, free_) : text_.Generate(free_);
  free_.End();
  if (free_.next()) {
    next_ = *free_.next();
    if (next_.kind == SectionKind::kFree) next_.forced = EndOfReasoning();
    next_.is_opened = next_.kind == SectionKind::kCall && free_.is_opened();
    return std::nullopt;
  }
  if (free_.is_last()) return StopReason::kStopToken;
  if (reason != StopReason::kStopToken || calls_.need() == AnswerNeed::kNothing) return reason;
  // The model has ended its turn without what it must have.
  const bool needs_call = calls_.need() == AnswerNeed::kCall;
  next_ = {.kind = needs_call ? SectionKind::kCall : SectionKind::kShaped,
           .at = text_.text().size()};
  if (free_.is_in_reasoning()) {
    next_.forced = std::string(setup_.tags.close) + (setup_.has_channels ? "" : "\n\n");
  }
  return std::nullopt;
}

// The prompt has begun the first message.
std::string AnswerRun::BeginOfMessage(size_t at) const {
  return std::string(setup_.has_channels && at > 0 ? kHarmonyTurn : "");
}

bool AnswerRun::may_call_again() const { return setup_.format->goes_on() && calls_.may_go_on(); }

std::optional<StopReason> AnswerRun::RunShaped(const SectionBegin& begin) {
  const std::string forced = begin.forced + BeginOfMessage(begin.at) +
                             std::string(setup_.has_channels ? kHarmonyFinal : "");
  if (const auto ended = text_.MoveTo(begin.at, forced)) return ended;
  const AnswerShape& shape = setup_.options.shape;
  form_.Constrain(shape);
  const StopReason reason = text_.Generate(shaped_);
  return IsCompleted(reason, shape, text_.text()) ? StopReason::kStopToken : reason;
}

std::optional<StopReason> AnswerRun::RunCall(const SectionBegin& begin) {
  if (const CallForm* const form = setup_.format->form()) return RunFormCall(begin, *form);
  std::vector<std::string> texts;
  size_t at = begin.at;
  std::string forced = begin.forced;
  while (const auto part = setup_.format->NextPart(*form_.tools(), texts)) {
    if (const auto ended = text_.MoveTo(at, forced + part->forced)) return ended;
    form_.Constrain(part->shape);
    call_.BeginPart(part->content);
    const StopReason reason = text_.Generate(call_);
    if (reason != StopReason::kStopToken && !IsCompleted(reason, part->shape, text_.text())) {
      return reason;
    }
    call_.EndPart();
    texts.push_back(text_.text());
    at = text_.text().size();
    forced.clear();
  }
  if (!may_call_again()) return StopReason::kStopToken;
  free_.GoToCallEnd();
  next_ = {.at = at, .forced = std::string(setup_.format->closing())};
  return std::nullopt;
}

// The constraint is first that of the name, and then that of the tool's arguments.
std::optional<StopReason> AnswerRun::RunFormCall(const SectionBegin& begin, const CallForm& form) {
  const CallPart name = *setup_.format->NextPart(*form_.tools(), {});
  const std::string opening = begin.is_opened ? "" : BeginOfMessage(begin.at) + name.forced;
  if (const auto ended = text_.MoveTo(begin.at, begin.forced + opening)) return ended;
  form_.Constrain(name.shape);
  call_.BeginPart(name.content);
  const StopReason named = text_.Generate(call_);
  if (named != StopReason::kStopToken) return named;
  const Tool& tool = form_.ToolOf(text_.text());
  const std::string name_end = WithNumber(form.name_end, calls_.count());
  if (const auto ended = text_.MoveTo(text_.text().size(), name_end)) return ended;
  form_.ConstrainArguments(tool, &form, AnswerForm::Extent::kWhole);
  arguments_.BeginCall(tool, &form);
  const StopReason reason = text_.Generate(arguments_);
  if (!arguments_.has_ended()) return reason;
  if (arguments_.is_last() || !may_call_again()) return StopReason::kStopToken;
  free_.GoToCallEnd();
  next_ = {.at = arguments_.next()->at, .forced = std::string(setup_.format->closing())};
  return std::nullopt;
}

// The model has named a tool, and its arguments begin. Text that follows them may be in the same
// token.
std::optional<StopReason> AnswerRun::RunArguments(const SectionBegin& begin) {
  const Tool& tool = form_.ToolOf(free_.call_name());
  const CallForm* const form = free_.call_form();
  form_.ConstrainArguments(tool, form, AnswerForm::Extent::kBegin);
  // The last token may have more than the place where they begin.
  const std::string written = free_.forced().empty() ? text_.text().substr(begin.at) : "";
  const bool is_kept = !written.empty() && text_.HasAllTokens() && form_.Accepts(written);
  if (!is_kept) {
    form_.ConstrainArguments(tool, form, AnswerForm::Extent::kBegin);
    if (const auto ended = text_.MoveTo(begin.at, free_.forced())) return ended;
  }
  arguments_.BeginCall(tool, form);
  arguments_.Begin(begin.at);
  if (is_kept) arguments_.Take(written);
  if (!arguments_.has_ended()) {
    const StopReason reason = text_.Generate(arguments_);
    if (!arguments_.has_ended()) return reason;
  }
  if (arguments_.is_last() || !calls_.may_go_on() || !text_.HasAllTokens()) {
    return StopReason::kStopToken;
  }
  free_.GoToArgumentsEnd();
  next_ = *arguments_.next();
  next_.is_written = true;
  return std::nullopt;
}

}  // namespace cria::server
