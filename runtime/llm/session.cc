#include "llm/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/format.h"
#include "llm/constraint.h"
#include "llm/measure/log_sum_exp.h"

namespace cria {
namespace {

bool IsCancelled(const std::atomic<bool>* cancel) {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

size_t ShareOf(const TokenModel& model) {
  if (model.max_sequences() == 1) return model.context_tokens();
  const size_t share = model.cache_tokens() / kKvPageTokens / model.max_sequences() * kKvPageTokens;
  return std::min(share, model.context_tokens());
}

}  // namespace

Session::Request::Request(Session& session, const Options& options)
    : session_(session), is_outer_(!session.is_in_request_) {
  if (!is_outer_) return;
  session_.is_in_request_ = true;
  session_.options_ = options;
}

Session::Request::~Request() {
  if (is_outer_) session_.EndRequest();
}

void Session::EndRequest() {
  is_in_request_ = false;
  logits_.Release();
  if (!has_sequence_) return;
  has_sequence_ = false;
  scheduler_.End(seat_);
}

Session::Session(Scheduler& scheduler, std::unique_ptr<Drafting> drafting)
    : scheduler_(scheduler),
      share_tokens_(ShareOf(scheduler.model())),
      drafting_(std::move(drafting)),
      draft_costs_(1 + (drafting_ == nullptr ? 0 : scheduler.max_drafts())) {
  tokens_.reserve(scheduler.model().context_tokens());
  chosen_.reserve(1 + scheduler.max_drafts());
}

Session::~Session() { scheduler_.Leave(seat_); }

void Session::Clear() {
  ForgetDrafts();
  tokens_.clear();
  cached_ = 0;
  num_forced_ = 0;
}

void Session::ForgetDrafts() {
  if (drafting_ != nullptr) drafting_->Forget();
}

Status Session::Begin(std::span<const int32_t> cacheable, size_t num_tokens) {
  const size_t context = context_tokens();
  if (!has_sequence_) {
    size_t room = options_.max_tokens;
    if (room == 0) room = share_tokens_ - (num_tokens < share_tokens_ ? num_tokens : 0);
    const bool is_alone = scheduler_.model().max_sequences() == 1;
    max_length_ = is_alone ? context : std::min(context, num_tokens + std::min(context, room));
  }
  CRIA_ASSIGN_OR_RETURN(cached_, scheduler_.Begin(seat_,
                                                  {.tokens = cacheable,
                                                   .reserved_tokens = max_length_,
                                                   .kept_tokens = options_.kept_tokens},
                                                  options_.cancel));
  has_sequence_ = true;
  return {};
}

Result<size_t> Session::HoldCache() {
  CRIA_RETURN_IF_ERROR(Begin(tokens_, tokens_.size()));
  return cached_;
}

Status Session::Restore(std::span<const int32_t> tokens, size_t cached_tokens,
                        const std::function<Status()>& write_rows) {
  const Request request(*this, {});
  Clear();
  has_logits_ = false;
  CRIA_RETURN_IF_ERROR(Begin({}, tokens.size()));
  CRIA_RETURN_IF_ERROR(scheduler_.Restore(seat_, tokens.first(cached_tokens), write_rows));
  tokens_.assign(tokens.begin(), tokens.end());
  cached_ = cached_tokens;
  return {};
}

Status Session::Prefill(std::span<const int32_t> tokens, const PromptCallback& on_prompt) {
  const TokenModel& model = scheduler_.model();
  if (tokens.empty())
    return Fail(ErrorCode::kUsage, "the prompt is empty: there is nothing to run");
  if (tokens.size() > model.context_tokens()) {
    return Fail(ErrorCode::kOutOfRange,
                Format("the prompt has {} tokens, but the context holds {}", tokens.size(),
                       model.context_tokens()),
                RemedyKind::kLargerContext);
  }
  for (const int32_t id : tokens) {
    if (id < 0 || static_cast<size_t>(id) >= model.vocab_size()) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("token id {} is outside the vocabulary of {}", id, model.vocab_size()));
    }
  }
  const Request request(*this, {});
  has_logits_ = false;
  // The last token is run even if it is in the cache, because its logits are not kept.
  CRIA_RETURN_IF_ERROR(Begin(tokens.first(tokens.size() - 1), tokens.size()));
  stats_.reused_tokens = cached_;
  num_forced_ = 0;
  ForgetDrafts();
  tokens_.assign(tokens.begin(), tokens.end());
  const auto begin = scheduler_.Now();
  const size_t first = cached_;
  const Status run = RunTo(tokens_.size(), on_prompt);
  stats_.prompt_tokens += cached_ - first;
  stats_.prompt_time += scheduler_.Now() - begin;
  if (!run) tokens_.resize(cached_);
  return run;
}

Status Session::RunTo(size_t end, const PromptCallback& on_prompt, size_t num_candidates) {
  while (true) {
    if (on_prompt) logits_.Release();
    const bool is_stopped = on_prompt && !on_prompt(cached_, end);
    if (is_stopped || (cached_ < end && IsCancelled(options_.cancel))) {
      return Fail(ErrorCode::kCancelled, "stopped while reading the prompt");
    }
    if (cached_ == end) return {};
    has_logits_ = false;
    const auto pending = std::span(tokens_).subspan(cached_, end - cached_);
    CRIA_ASSIGN_OR_RETURN(Scheduler::Progress progress,
                          scheduler_.Run(seat_, pending, {}, num_candidates));
    cached_ += progress.num_tokens;
    logits_ = std::move(progress.logits);
    ++num_runs_;
    has_logits_ = cached_ == end;
  }
}

Status Session::Drop(size_t first, size_t count) {
  if (first > tokens_.size() || count > tokens_.size() - first) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens after the first {} cannot be dropped: the context has {}", count,
                       first, tokens_.size()));
  }
  if (count == 0) return {};
  const Request request(*this, {});
  const auto begin = scheduler_.Now();
  has_logits_ = false;
  if (!has_sequence_) CRIA_RETURN_IF_ERROR(Begin(tokens_, tokens_.size()));
  const Status dropped = scheduler_.Drop(seat_, first, count, cached_);
  stats_.decode_time += scheduler_.Now() - begin;
  CRIA_RETURN_IF_ERROR(dropped);
  ForgetDrafts();
  const auto position = tokens_.begin() + static_cast<ptrdiff_t>(first);
  tokens_.erase(position, position + static_cast<ptrdiff_t>(count));
  stats_.dropped_tokens += count;
  return {};
}

Status Session::DropHalfBehind(size_t keep_tokens) {
  if (keep_tokens >= tokens_.size()) {
    return Fail(ErrorCode::kUsage,
                Format("nothing can be dropped: the first {} tokens are kept, and the context "
                       "has {}",
                       keep_tokens, tokens_.size()));
  }
  return Drop(keep_tokens, std::max<size_t>((tokens_.size() - keep_tokens) / 2, 1));
}

Result<std::span<float>> Session::Logits() {
  const Request request(*this, {});
  CRIA_ASSIGN_OR_RETURN(logits_, TakeLogits({}, /*num_candidates=*/0));
  return logits_.front();
}

Result<LogitRows> Session::TakeLogits(std::span<const int32_t> drafts, size_t num_candidates) {
  if (tokens_.empty()) return Fail(ErrorCode::kUsage, "there is no prompt to go on from");
  const auto begin = scheduler_.Now();
  if (!has_sequence_) CRIA_RETURN_IF_ERROR(Begin(tokens_, tokens_.size()));
  if (cached_ == tokens_.size()) {
    if (has_logits_) {
      has_logits_ = false;
      LogitRows logits = logits_.empty() ? scheduler_.TakeLogits(seat_) : std::move(logits_);
      if (!logits.empty()) return logits;
    }
    CRIA_RETURN_IF_ERROR(Begin(std::span(tokens_).first(cached_ - 1), tokens_.size()));
  }
  const size_t pending = tokens_.size() - cached_;
  if (pending == 1) return RunLast(drafts, num_candidates);
  if (num_forced_ > 0) {
    CRIA_RETURN_IF_ERROR(RunForced(num_candidates));
  } else {
    CRIA_RETURN_IF_ERROR(RunTo(tokens_.size(), nullptr, num_candidates));
    stats_.prompt_tokens += pending;
    stats_.prompt_time += scheduler_.Now() - begin;
  }
  has_logits_ = false;
  return std::move(logits_);
}

Result<LogitRows> Session::RunLast(std::span<const int32_t> drafts, size_t num_candidates) {
  if (IsCancelled(options_.cancel)) {
    return Fail(ErrorCode::kCancelled, "stopped before the next token");
  }
  const auto begin = scheduler_.Now();
  has_logits_ = false;
  num_forced_ = 0;
  CRIA_ASSIGN_OR_RETURN(Scheduler::Progress progress,
                        scheduler_.Run(seat_, std::span(tokens_).last(1), drafts, num_candidates));
  ++cached_;
  ++stats_.decoded_tokens;
  ++stats_.decoding_forwards;
  stats_.drafted_tokens += progress.num_drafts;
  const auto time = scheduler_.Now() - begin;
  stats_.decode_time += time;
  // If no Forward ran without drafts so far, this one took longer.
  if (progress.num_drafts > 0 && draft_costs_.front() == 0.0) {
    draft_costs_.front() = std::chrono::duration<double>(time).count();
  }
  stats_.undrafted_time += progress.num_drafts == 0 ? time : OneForward();
  return std::move(progress.logits);
}

Status Session::RunForced(size_t num_candidates) {
  const auto begin = scheduler_.Now();
  const size_t first = cached_;
  const size_t runs = num_runs_;
  const Status run = RunTo(tokens_.size(), nullptr, num_candidates);
  num_forced_ = 0;
  stats_.decoded_tokens += cached_ - first;
  stats_.decoding_forwards += num_runs_ - runs;
  const auto time = scheduler_.Now() - begin;
  stats_.decode_time += time;
  stats_.undrafted_time += time;
  return run;
}

SessionStats::Duration Session::OneForward() const {
  const double seconds = draft_costs_.front();
  if (!std::isfinite(seconds)) return {};
  return std::chrono::duration_cast<SessionStats::Duration>(std::chrono::duration<double>(seconds));
}

std::span<const int32_t> Session::Draft(const GenerationOptions& options, size_t max_tokens,
                                        Sampler& sampler) {
  const bool runs_one = has_sequence_ && cached_ + 1 == tokens_.size();
  if (drafting_ == nullptr || !runs_one || max_tokens == 0) return {};
  const auto begin = scheduler_.Now();
  const size_t others = scheduler_.EstimateSeconds(seat_, draft_costs_);
  const std::span<const int32_t> drafts = drafting_->Draft(
      tokens_, max_tokens, {.seconds = draft_costs_, .other_sequences = others}, sampler);
  stats_.decode_time += scheduler_.Now() - begin;
  // The text would end at a stop token, and what follows it in a draft would be run in vain.
  const auto stop = std::ranges::find_first_of(drafts, options.stop_token_ids);
  return drafts.first(static_cast<size_t>(stop - drafts.begin()));
}

Status Session::Choose(const GenerationOptions& options, Sampler& sampler, size_t max_tokens) {
  // The context has room for the drafts that are accepted.
  const size_t max_drafts =
      std::min(max_tokens - 1, max_length_ - std::min(max_length_, tokens_.size()));
  std::span<const int32_t> drafts = Draft(options, max_drafts, sampler);
  const size_t tokens_left = TokensLeft(options, max_tokens);
  if (options.constraint != nullptr && !drafts.empty()) {
    drafts = drafts.first(options.constraint->CountAllowed(drafts, tokens_left));
  }
  const bool needs_all =
      options.constraint != nullptr || options.log_probabilities || options.on_logits != nullptr;
  CRIA_ASSIGN_OR_RETURN(LogitRows rows,
                        TakeLogits(drafts, needs_all ? 0 : sampler.NumCandidates()));
  chosen_.clear();
  const size_t length = tokens_.size();
  size_t num_drawn = 0;
  Status status;
  for (size_t row = 0; row < rows.size(); ++row) {
    const Result<Choice> choice =
        ChooseFrom(rows[row], options, sampler, num_drawn, tokens_left - row);
    // A later row is run again, and then its error is that of the next token.
    if (!choice && row == 0) status = std::unexpected(choice.error());
    if (!choice || choice->token.id < 0) break;
    if (options.on_logits) options.on_logits(tokens_.size(), rows[row]);
    chosen_.push_back(*choice);
    num_drawn += choice->is_forced ? 0 : 1;
    const int32_t token = choice->token.id;
    if (row + 1 == rows.size() || token != drafts[row]) break;
    if (options.constraint != nullptr && !options.constraint->Try(token)) break;
    tokens_.push_back(token);
  }
  if (options.constraint != nullptr) options.constraint->Rewind(tokens_.size() - length);
  tokens_.resize(length);
  rows.Release();
  return status;
}

Result<Session::Choice> Session::ChooseFrom(std::span<float> logits,
                                            const GenerationOptions& options, Sampler& sampler,
                                            size_t num_drawn, size_t max_tokens) {
  Constraint::Next next;
  const TokenMask* mask = nullptr;
  if (options.constraint != nullptr) {
    CRIA_ASSIGN_OR_RETURN(next, options.constraint->FindNext(options.stop_token_ids, max_tokens));
    if (next.is_over) return Choice();
    if (next.forced >= 0) return Choice{{next.forced, 0.0}, /*is_forced=*/true};
    mask = &next.mask;
  }
  CRIA_ASSIGN_OR_RETURN(const int32_t id, sampler.Peek(logits, tokens_, num_drawn, mask));
  const double log_probability =
      options.log_probabilities ? logits[static_cast<size_t>(id)] - LogSumExp(logits) : 0.0;
  return Choice{{id, log_probability}, /*is_forced=*/false};
}

size_t Session::TokensLeft(const GenerationOptions& options, size_t max_tokens) const {
  // A token that finds the context full is handed out all the same, unless there is made room.
  return options.make_room ? max_tokens : std::min(max_tokens, max_length_ + 1 - tokens_.size());
}

Result<std::optional<StopReason>> Session::AddForced(const GenerationOptions& options,
                                                     const TokenCallback& on_token,
                                                     size_t max_tokens, size_t& generated) {
  if (tokens_.empty()) return std::nullopt;
  if (!has_sequence_) CRIA_RETURN_IF_ERROR(Begin(tokens_, tokens_.size()));
  while (true) {
    const size_t tokens_left = TokensLeft(options, max_tokens - generated);
    CRIA_ASSIGN_OR_RETURN(const Constraint::Next next,
                          options.constraint->FindNext(options.stop_token_ids, tokens_left));
    if (next.is_over) return StopReason::kStopToken;
    if (next.forced < 0) return std::nullopt;
    // Other sessions may go on meanwhile.
    logits_.Release();
    const bool is_full = tokens_.size() == max_length_;
    if (is_full && options.make_room && cached_ < tokens_.size()) {
      CRIA_RETURN_IF_ERROR(RunForced());
    }
    ++generated;
    ++num_forced_;
    ++stats_.forced_tokens;
    CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> reason,
                          Add({next.forced, 0.0}, /*is_cached=*/false, options, on_token));
    if (reason) return reason;
    if (generated == max_tokens) return StopReason::kMaxTokens;
    if (IsCancelled(options.cancel)) return StopReason::kCancelled;
  }
}

Result<std::optional<StopReason>> Session::Add(const GeneratedToken& token, bool is_cached,
                                               const GenerationOptions& options,
                                               const TokenCallback& on_token) {
  if (std::ranges::contains(options.stop_token_ids, token.id)) return StopReason::kStopToken;
  if (tokens_.size() == max_length_ && options.make_room) {
    if (const Status made = options.make_room(); !made) {
      if (made.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
      return std::unexpected(made.error());
    }
  }
  if (options.constraint != nullptr) {
    CRIA_RETURN_IF_ERROR(options.constraint->Accept(token.id));
  }
  ++stats_.generated_tokens;
  const bool goes_on = on_token(token);
  if (tokens_.size() == max_length_) {
    return goes_on ? StopReason::kContextFull : StopReason::kCancelled;
  }
  tokens_.push_back(token.id);
  if (is_cached) {
    scheduler_.Accept(seat_, std::span(tokens_).last(1));
    ++cached_;
    ++stats_.decoded_tokens;
    ++stats_.accepted_tokens;
    stats_.undrafted_time += OneForward();
  }
  if (!goes_on) return StopReason::kCancelled;
  return std::nullopt;
}

Result<StopReason> Session::Generate(const GenerationOptions& options, Sampler& sampler,
                                     const TokenCallback& on_token) {
  const Request request(*this, {.max_tokens = options.max_tokens, .cancel = options.cancel});
  const size_t max_tokens = options.max_tokens == 0 ? SIZE_MAX : options.max_tokens;
  for (size_t generated = 0; generated < max_tokens;) {
    if (IsCancelled(options.cancel)) return StopReason::kCancelled;
    const Result<std::optional<StopReason>> reason =
        AddNext(options, sampler, on_token, max_tokens, generated);
    if (!reason && reason.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
    CRIA_RETURN_IF_ERROR(reason);
    if (*reason) return **reason;
  }
  return StopReason::kMaxTokens;
}

Result<std::optional<StopReason>> Session::AddNext(const GenerationOptions& options,
                                                   Sampler& sampler, const TokenCallback& on_token,
                                                   size_t max_tokens, size_t& generated) {
  if (options.constraint != nullptr) {
    CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> reason,
                          AddForced(options, on_token, max_tokens, generated));
    if (reason) return reason;
  }
  CRIA_RETURN_IF_ERROR(Choose(options, sampler, max_tokens - generated));
  for (size_t i = 0; i < chosen_.size(); ++i, ++generated) {
    if (i > 0 && IsCancelled(options.cancel)) return StopReason::kCancelled;
    const Choice& choice = chosen_[i];
    if (choice.is_forced) {
      ++stats_.forced_tokens;
    } else {
      sampler.Advance();
    }
    // The first ones are drafts, which the cache has.
    const bool is_cached = i + 1 < chosen_.size();
    CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> reason,
                          Add(choice.token, is_cached, options, on_token));
    if (reason) return reason;
  }
  return std::nullopt;
}

}  // namespace cria
