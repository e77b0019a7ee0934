#include "serve/api/answer_run.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

constexpr std::string_view kAnswerSpace = " \t\r\n";

// Whether the last token that was allowed has completed the text: then nothing is cut off.
bool IsCompleted(StopReason reason, const AnswerShape& shape, std::string_view text) {
  const bool is_json =
      shape.kind == AnswerShape::Kind::kJsonObject || shape.kind == AnswerShape::Kind::kJsonSchema;
  return reason == StopReason::kMaxTokens && is_json && Json::accept(text);
}

bool IsCutOff(StopReason reason) {
  return reason == StopReason::kMaxTokens || reason == StopReason::kContextFull;
}

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, std::not_fn(IsContinuation)));
}

bool IsPromptCancelled(const Status& status) {
  return !status && status.error().code() == ErrorCode::kCancelled;
}

}  // namespace

std::optional<StopReason> AnswerRun::ReadPrompt() {
  const Status read =
      turn_->Prefill(setup_.prompt, [this](size_t, size_t) { return listener_.goes_on(); });
  if (IsPromptCancelled(read)) return StopReason::kCancelled;
  ThrowIfError(read);
  return std::nullopt;
}

AnswerEnd AnswerRun::Run() {
  using Clock = std::chrono::steady_clock;
  const AnswerOptions& options = setup_.options;
  // What is generated beyond a session's share would have to be set aside for it alone.
  constexpr size_t kForcedTokens = 64;
  const size_t wanted = options.max_tokens + kForcedTokens;
  const bool fits =
      options.max_tokens != 0 && setup_.prompt.size() + wanted <= session_.share_tokens();
  Turn turn(session_, {.max_tokens = fits ? wanted : 0, .cancel = setup_.cancel});
  turn_ = &turn;
  AnswerEnd end = {.prompt_tokens = setup_.prompt.size()};
  const Clock::time_point begin = Clock::now();
  std::optional<StopReason> reason = ReadPrompt();
  const Clock::time_point read = Clock::now();
  end.cached_tokens = session_.stats().reused_tokens;
  if (!reason) reason = RunSections();
  end.prompt_time = read - begin;
  end.completion_time = Clock::now() - read;
  // Text that is forced around calls may go beyond what was asked for, and is not the model's.
  const size_t max_tokens = setup_.options.max_tokens;
  end.completion_tokens = max_tokens == 0 ? num_tokens_ : std::min(num_tokens_, max_tokens);
  end.drafted_tokens = session_.stats().drafted_tokens;
  end.accepted_tokens = session_.stats().accepted_tokens;
  // Nothing is cut off if the answer went on behind its calls and had no more text yet.
  const bool has_only_calls = num_calls_ > 0 && section_ == Section::kFree && skips_space_;
  if (*reason == StopReason::kCancelled) {
    end.reason = FinishReason::kCancelled;
  } else if (!has_only_calls && IsCutOff(*reason)) {
    end.reason = FinishReason::kLength;
  } else {
    end.reason = num_calls_ > 0 ? FinishReason::kToolCalls : FinishReason::kStop;
  }
  return end;
}

StopReason AnswerRun::RunSections() {
  begin_tokens_ = session_.tokens().size();
  Section section = Section::kFree;
  if (!setup_.may_reason && need_ == Need::kCall) section = Section::kCall;
  if (!setup_.may_reason && need_ == Need::kShape && !tools_) section = Section::kShaped;
  while (true) {
    const std::optional<StopReason> reason = section == Section::kFree     ? RunFree()
                                             : section == Section::kShaped ? RunShaped()
                                             : section == Section::kCall   ? RunCall()
                                                                           : RunArguments();
    if (reason) return *reason;
    section = *next_;
  }
}

void AnswerRun::Next(Section section, size_t at, std::string_view forced) {
  next_ = section;
  next_at_ = at;
  next_forced_ = forced;
}

std::optional<StopReason> AnswerRun::MoveToNext(std::string_view forced) {
  const std::string following = std::exchange(next_forced_, {}) + std::string(forced);
  const size_t at = std::exchange(next_at_, 0);
  const auto kept_end = std::ranges::upper_bound(token_ends_, at);
  const auto context = session_.tokens();
  // The last token of a full context is not part of it.
  const size_t kept =
      std::min(static_cast<size_t>(kept_end - token_ends_.begin()), context.size() - begin_tokens_);
  const size_t text_end = kept == 0 ? 0 : token_ends_[kept - 1];
  const std::string rest = text_.substr(text_end, at - text_end) + following;
  if (rest.empty() && begin_tokens_ + kept == context.size()) return std::nullopt;
  const auto beginning = context.first(begin_tokens_ + kept);
  std::vector<int32_t> tokens(beginning.begin(), beginning.end());
  const auto added = ValueOf(tokenizer_.Encode(rest, {.add_bos = false, .parse_special = true}));
  tokens.insert(tokens.end(), added.begin(), added.end());
  num_tokens_ = num_tokens_ - (token_ends_.size() - kept) + added.size();
  if (tokens.size() >= turn_->max_length()) return StopReason::kContextFull;
  const Status read =
      turn_->Prefill(tokens, [this](size_t, size_t) { return listener_.goes_on(); });
  if (IsPromptCancelled(read)) return StopReason::kCancelled;
  ThrowIfError(read);
  return std::nullopt;
}

std::optional<StopReason> AnswerRun::RunFree() {
  if (!keeps_text_) {
    if (const auto ended = MoveToNext()) return ended;
  }
  fresh_answer_.clear();
  answer_bytes_ = 0;
  filter_.reset();
  if (!setup_.tags.open.empty()) BeginFilter();
  if (tools_ && !finder_) MakeFinder();
  const StopReason reason = Generate(Section::kFree, /*is_constrained=*/false);
  if (!next_ && !is_over_) EndFree();
  if (next_) return std::nullopt;
  if (is_over_) return StopReason::kStopToken;
  if (reason != StopReason::kStopToken || need_ == Need::kNothing) return reason;
  // The model has ended its turn without what it must have.
  std::string close;
  if (is_in_reasoning()) close = std::string(setup_.tags.close) + "\n\n";
  Next(need_ == Need::kCall ? Section::kCall : Section::kShaped, text_.size(), close);
  return std::nullopt;
}

void AnswerRun::BeginFilter() {
  filter_.emplace(setup_.tags, setup_.begins_in_reasoning && num_calls_ == 0,
                  [this](AnswerPart part, std::string_view text) {
                    if (part == AnswerPart::kReasoning) return listener_.OnText(part, text);
                    fresh_answer_ += text;
                    answer_bytes_ += text.size();
                  });
}

std::optional<StopReason> AnswerRun::RunShaped() {
  if (const auto ended = MoveToNext()) return ended;
  ThrowIfError(Constrain(setup_.options.shape), setup_.options.shape.field);
  const StopReason reason = Generate(Section::kShaped, /*is_constrained=*/true);
  if (IsCompleted(reason, setup_.options.shape, text_)) return StopReason::kStopToken;
  return reason;
}

std::optional<StopReason> AnswerRun::RunCall() {
  std::vector<std::string> texts;
  while (const auto part = setup_.format->NextPart(*tools_, texts)) {
    if (const auto ended = MoveToNext(part->forced)) return ended;
    ThrowIfError(Constrain(part->shape), part->shape.field);
    reader_.Begin(part->content);
    const StopReason reason = Generate(Section::kCall, /*is_constrained=*/true);
    if (reason != StopReason::kStopToken && !IsCompleted(reason, part->shape, text_)) {
      return reason;
    }
    reader_.End();
    texts.push_back(text_);
    next_at_ = text_.size();
  }
  if (!setup_.format->goes_on() || !may_call_again()) return StopReason::kStopToken;
  if (!finder_) MakeFinder();
  finder_->GoToCallEnd();
  Next(Section::kFree, text_.size(), setup_.format->closing());
  return std::nullopt;
}

StopReason AnswerRun::Generate(Section section, bool is_constrained) {
  const AnswerOptions& answer = setup_.options;
  const bool is_first = num_tokens_ == 0;
  section_ = section;
  next_.reset();
  untold_tokens_.clear();
  const std::string kept = BeginText();
  if (answer.max_tokens != 0 && num_tokens_ >= answer.max_tokens) return StopReason::kMaxTokens;
  detokenizer_.emplace(tokenizer_,
                       DetokenizerOptions{.at_text_start = is_first && setup_.at_text_start});
  if (stop_strings_) stop_strings_->Restart();
  if (!kept.empty()) TakeText(kept);
  if (next_ || is_over_) return StopReason::kStopToken;
  GenerationOptions options = {
      .max_tokens = answer.max_tokens == 0 ? 0 : answer.max_tokens - num_tokens_,
      .cancel = setup_.cancel,
      .log_probabilities = answer.log_probabilities};
  if (!answer.ignore_eos || is_constrained) {
    options.stop_token_ids = setup_.stop_token_ids;
  }
  if (is_constrained) options.constraint = setup_.constraint;
  if (log_probabilities_.count() > 0) {
    options.on_logits = [this](size_t position, std::span<const float> logits) {
      log_probabilities_.Add(position, logits);
    };
  }
  const bool is_stopped = stop_strings_ && stop_strings_->is_found();
  const Result<StopReason> reason =
      is_stopped ? StopReason::kStopString
                 : cria::Generate(*turn_, options, *sampler_,
                                  [this](const GeneratedToken& token) { return OnToken(token); });
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  if (!reason) {
    // Waiting would not help: a constraint has always the same memory.
    const bool is_too_large = is_constrained && reason.error().code() == ErrorCode::kOutOfMemory &&
                              !setup_.constraint->FindNext(options.stop_token_ids, SIZE_MAX);
    if (!is_too_large) throw ErrorOf(reason.error());
    throw RequestError(400, reason.error().message(),
                       section == Section::kCall ? "tools" : answer.shape.field);
  }
  if (!next_) {
    const std::string_view rest = detokenizer_->Flush();
    text_ += rest;
    if (!rest.empty()) TakeText(rest);
    if (stop_strings_ && stop_strings_->is_found()) return StopReason::kStopString;
    if (stop_strings_) {
      // What was held back is a part of a stop string's own memory, which does not change.
      const std::string_view held = stop_strings_->Flush();
      if (!held.empty()) TakeUnstopped(held);
    }
  }
  return *reason;
}

// Returns the text of the section that is there already: in tokens that also end the section
// before.
std::string AnswerRun::BeginText() {
  if (!std::exchange(keeps_text_, false)) {
    text_.clear();
    token_ends_.clear();
    taken_bytes_ = 0;
    begin_tokens_ = session_.tokens().size();
    return "";
  }
  const size_t at = std::exchange(next_at_, 0);
  const auto kept = std::ranges::upper_bound(token_ends_, at);
  const size_t begin = kept == token_ends_.begin() ? 0 : *(kept - 1);
  begin_tokens_ += static_cast<size_t>(kept - token_ends_.begin());
  token_ends_.erase(token_ends_.begin(), kept);
  for (size_t& end : token_ends_) end -= begin;
  text_.erase(0, begin);
  taken_bytes_ = at - begin;
  return text_.substr(taken_bytes_);
}

bool AnswerRun::OnToken(const GeneratedToken& token) {
  // Exceptions must not pass through the session, which is compiled without them.
  try {
    ++num_tokens_;
    const bool is_in_character = detokenizer_->is_in_character();
    std::string_view text = detokenizer_->Append(token.id);
    if (text.empty()) text = ControlText(token.id);
    text_ += text;
    token_ends_.push_back(text_.size());
    if (setup_.options.log_probabilities) {
      TellLogProbability(token, FirstCharacter(token.id, is_in_character));
      num_characters_ += CountCharacters(text);
    }
    if (!text.empty()) TakeText(text);
    const bool is_stopped = stop_strings_ && stop_strings_->is_found();
    return !next_ && !is_over_ && !is_stopped && listener_.goes_on();
  } catch (...) {
    exception_ = std::current_exception();
    return false;
  }
}

size_t AnswerRun::FirstCharacter(int32_t id, bool is_in_character) const {
  const std::string_view piece = tokenizer_.Piece(id);
  const bool continues = piece.empty() || IsContinuation(piece.front());
  // What was begun and does not go on became a character of its own.
  return num_characters_ + (is_in_character && !continues ? 1 : 0);
}

// With tools, a control token may mark a call, perhaps in a form that is not known here.
std::string_view AnswerRun::ControlText(int32_t id) const {
  const auto marker = std::ranges::find(markers_, id, &Marker::first);
  if (marker != markers_.end()) return marker->second;
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  const auto index = static_cast<size_t>(id);
  const bool is_shown =
      tools_ && index < vocabulary.size() && vocabulary.piece_types[index] == PieceType::kControl &&
      id != vocabulary.bos_token_id && !std::ranges::contains(setup_.stop_token_ids, id);
  return is_shown ? vocabulary.piece(index) : std::string_view();
}

// Only the answer's own text has log-probabilities, neither reasoning nor calls.
void AnswerRun::TellLogProbability(const GeneratedToken& token, size_t first_character) {
  const auto most_likely = log_probabilities_.Take(session_.tokens().size());
  const bool is_text = section_ == Section::kFree || section_ == Section::kShaped;
  if (is_in_reasoning() || !is_text) return;
  TokenLogProbability told = {.text = tokenizer_.Piece(token.id),
                              .first_character = first_character,
                              .log_probability = token.log_probability};
  told.most_likely.reserve(most_likely.size());
  for (const auto& [id, log_probability] : most_likely) {
    told.most_likely.emplace_back(tokenizer_.Piece(id), log_probability);
  }
  if (section_ == Section::kFree && finder_) {
    untold_tokens_.push_back(std::move(told));
  } else {
    listener_.OnToken(std::move(told));
  }
}

void AnswerRun::TakeText(std::string_view text) {
  const bool is_call = section_ == Section::kCall || section_ == Section::kArguments;
  if (!stop_strings_ || is_call) return TakeUnstopped(text);
  for (const std::string_view part : stop_strings_->Append(text)) {
    if (!part.empty() && !next_) TakeUnstopped(part);
  }
}

void AnswerRun::TakeUnstopped(std::string_view text) {
  taken_bytes_ += text.size();
  switch (section_) {
    case Section::kFree:
      if (filter_) {
        filter_->Append(text);
      } else {
        fresh_answer_ += text;
        answer_bytes_ += text.size();
      }
      if (!fresh_answer_.empty()) TakeAnswer();
      break;
    case Section::kShaped:
      listener_.OnText(AnswerPart::kAnswer, text);
      break;
    case Section::kCall:
      reader_.Append(text);
      break;
    case Section::kArguments:
      if (!next_ && !is_over_) TakeArguments(text, taken_bytes_ - text.size());
      break;
  }
}

void AnswerRun::TakeAnswer() {
  const std::string text = std::exchange(fresh_answer_, {});
  if (need_ == Need::kCall) return Next(Section::kCall, answer_begin());
  if (!finder_) {
    if (need_ == Need::kShape) return Next(Section::kShaped, answer_begin());
    return PassText(text);
  }
  finder_->Append(text);
  if (finder_->is_found() && !next_ && !is_over_) {
    Next(Section::kArguments, answer_begin() + finder_->begin());
  }
}

void AnswerRun::PassText(std::string_view text) {
  if (skips_space_) text.remove_prefix(std::min(text.find_first_not_of(kAnswerSpace), text.size()));
  if (text.empty()) return;
  if (tools_ && tools_->choice == ToolUse::Choice::kRequired) {
    is_over_ = true;
    return;
  }
  skips_space_ = false;
  for (TokenLogProbability& token : std::exchange(untold_tokens_, {})) {
    listener_.OnToken(std::move(token));
  }
  listener_.OnText(AnswerPart::kAnswer, text);
}

void AnswerRun::EndFree() {
  if (filter_) filter_->Flush();
  if (!fresh_answer_.empty()) TakeAnswer();
  if (!next_ && finder_) finder_->Flush();
}

}  // namespace cria::serve
