// Calls of tools that the model writes in free text, and their arguments.

#include <algorithm>
#include <utility>

#include "serve/api/answer_run.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

// More calls than this in one answer are a model that does not end.
constexpr size_t kMaxCalls = 64;

}  // namespace

AnswerShape AnswerRun::ArgumentsShape(const Tool& tool) {
  return {AnswerShape::Kind::kJsonSchema, tool.parameters, "tools"};
}

const Tool& AnswerRun::ToolOf(std::string_view name) const {
  return *std::ranges::find(tools_->tools, name, &Tool::name);
}

bool AnswerRun::Accepts(std::string_view text) {
  const auto ids = ValueOf(tokenizer_.Encode(text, {.add_bos = false}));
  return std::ranges::all_of(
      ids, [this](int32_t id) { return setup_.constraint->Accept(id).has_value(); });
}

bool AnswerRun::Fits(const ToolCall& call) {
  // White space is the model's own affair.
  const std::optional<Json> arguments = TryReadJson(call.arguments);
  const Status set = Constrain(ArgumentsShape(ToolOf(call.name)));
  if (!arguments || !set || !Accepts(Written(*arguments))) return false;
  const auto next = setup_.constraint->FindNext(setup_.stop_token_ids, /*max_tokens=*/1);
  return next && next->mask.may_end;
}

// Without a constraint, the finder waits for the ends of calls. An object is never a call if the
// text must match something else.
void AnswerRun::MakeFinder() {
  const CallFinder::Options options = {
      .takes_bare = setup_.options.shape.kind == AnswerShape::Kind::kAny,
      .stops_at_arguments = setup_.constraint != nullptr};
  finder_ = std::make_unique<CallFinder>(
      *tools_, options,
      CallFinder::Listener{
          .on_text = [this](std::string_view text) { TakeFoundText(text); },
          .on_call = [this](const ToolCall& call) { return TakeFoundCall(call); }});
}

void AnswerRun::TakeFoundText(std::string_view text) {
  if (next_ || is_over_) return;
  if (need_ == Need::kShape) return Next(Section::kShaped, answer_begin());
  PassText(text);
}

bool AnswerRun::TakeFoundCall(const ToolCall& call) {
  if (next_ || is_over_) return true;
  if (setup_.constraint != nullptr && !Fits(call)) return false;
  BeginCall(call.name);
  listener_.OnArguments(num_calls_ - 1, call.arguments);
  is_over_ = !may_call_again();
  return true;
}

// The model has named a tool, and its arguments begin. Text that follows them may be in the same
// token.
std::optional<StopReason> AnswerRun::RunArguments() {
  const AnswerShape shape = ArgumentsShape(ToolOf(finder_->name()));
  const grammar::ConstraintSource source = {.kind = grammar::ConstraintKind::kJsonSchemaAtBegin,
                                            .text = shape.text};
  ThrowIfError(setup_.constraint->Set(source), shape.field);
  // The last token may have more than the place where they begin.
  const std::string begun = finder_->forced().empty() ? text_.substr(next_at_) : std::string();
  const bool is_kept = !begun.empty() && HasAllTokens() && Accepts(begun);
  if (!is_kept) {
    ThrowIfError(setup_.constraint->Set(source), shape.field);
    if (const auto ended = MoveToNext(finder_->forced())) return ended;
  }
  BeginCall(finder_->name());
  arguments_.Begin(/*watched_depth=*/0);
  const size_t begin = std::exchange(next_at_, 0);
  next_.reset();
  if (is_kept) TakeArguments(begun, begin);
  if (!next_ && !is_over_) {
    const StopReason reason = Generate(Section::kArguments, /*is_constrained=*/true);
    if (!next_ && !is_over_) return reason;
  }
  if (is_over_ || !may_call_again() || !HasAllTokens()) return StopReason::kStopToken;
  finder_->GoToArgumentsEnd();
  keeps_text_ = true;
  return std::nullopt;
}

// The text begins at `at` in text_.
void AnswerRun::TakeArguments(std::string_view text, size_t at) {
  size_t bytes = 0;
  while (bytes < text.size() && !is_over_ && !arguments_.is_complete()) {
    // The constraint lets objects be nested more deeply.
    is_over_ = arguments_.Take(text[bytes++]) == JsonScanner::Step::kInvalid;
  }
  if (bytes > 0) listener_.OnArguments(num_calls_ - 1, text.substr(0, bytes));
  if (arguments_.is_complete()) Next(Section::kFree, at + bytes);
}

// The last token of a full context is not part of it, and a token may have begun a character.
bool AnswerRun::HasAllTokens() {
  return begin_tokens_ + token_ends_.size() == session_.tokens().size() &&
         detokenizer_->Flush().empty();
}

bool AnswerRun::may_call_again() const {
  const size_t max_tokens = setup_.options.max_tokens;
  const bool is_full = max_tokens != 0 && num_tokens_ >= max_tokens;
  return tools_->is_parallel && num_calls_ < kMaxCalls && !is_full;
}

void AnswerRun::BeginCall(std::string_view name) {
  need_ = Need::kNothing;
  skips_space_ = true;
  listener_.OnCall(num_calls_++, NewCallId(), std::string(name));
}

}  // namespace cria::serve
