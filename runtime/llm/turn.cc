#include "llm/turn.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "llm/check_prompt.h"

namespace cria {
namespace {

// If there is only one sequence, it reserves so many tokens more than it has. The rest of the cache
// stays with earlier texts until the sequence needs it.
constexpr size_t kTokensAhead = 4 * kKvPageTokens;

}  // namespace

Turn::Turn(Session& session, const TurnOptions& options) : session_(session), options_(options) {
  if (session_.turn_ == nullptr) session_.turn_ = this;
}

Turn::~Turn() {
  logits_.Release();
  if (session_.turn_ == this) session_.EndTurn();
}

Status Turn::Begin(std::span<const int32_t> cacheable, size_t num_tokens, bool reads) {
  if (session_.turn_ != this) {
    return Fail(ErrorCode::kInternal, "another turn of the session has not ended");
  }
  const size_t context = session_.context_tokens();
  const bool is_alone = session_.scheduler_.model().max_sequences() == 1;
  if (!has_sequence()) {
    size_t room = options_.max_tokens;
    if (room == 0)
      room = session_.share_tokens_ - (num_tokens < session_.share_tokens_ ? num_tokens : 0);
    max_length_ = is_alone ? context : std::min(context, num_tokens + std::min(context, room));
  }
  const bool grows = is_alone && session_.scheduler_.model().sequences().max_open() > 1;
  reserved_ = grows ? std::max(has_sequence() ? reserved_ : 0,
                               std::min(max_length_, num_tokens + kTokensAhead))
                    : max_length_;
  CRIA_ASSIGN_OR_RETURN(session_.cached_,
                        session_.scheduler_.Begin(session_.seat_,
                                                  {.tokens = cacheable,
                                                   .reserved_tokens = reserved_,
                                                   .kept_tokens = options_.kept_tokens,
                                                   .prompt_tokens = num_tokens,
                                                   .reads = reads},
                                                  options_.cancel));
  session_.has_sequence_ = true;
  return {};
}

Status Turn::Grow(size_t num_tokens) {
  if (num_tokens <= reserved_) return {};
  reserved_ = std::min(max_length_, num_tokens + kTokensAhead);
  CRIA_ASSIGN_OR_RETURN(
      session_.cached_,
      session_.scheduler_.Begin(session_.seat_,
                                {.tokens = std::span(session_.tokens_).first(session_.cached_),
                                 .reserved_tokens = reserved_,
                                 .kept_tokens = options_.kept_tokens},
                                options_.cancel));
  return {};
}

Status Turn::Hold() {
  return has_sequence() ? Status() : Begin(session_.tokens_, session_.tokens_.size());
}

Result<size_t> Turn::HoldCache() {
  CRIA_RETURN_IF_ERROR(Begin(session_.tokens_, session_.tokens_.size()));
  return session_.cached_;
}

Status Turn::Restore(std::span<const int32_t> tokens, size_t cached_tokens,
                     const std::function<Status()>& write_rows) {
  session_.Clear();
  session_.has_logits_ = false;
  CRIA_RETURN_IF_ERROR(Begin({}, tokens.size()));
  CRIA_RETURN_IF_ERROR(
      session_.scheduler_.Restore(session_.seat_, tokens.first(cached_tokens), write_rows));
  session_.tokens_.assign(tokens.begin(), tokens.end());
  session_.cached_ = cached_tokens;
  return {};
}

Status Turn::Prefill(std::span<const int32_t> tokens, const PromptCallback& on_prompt) {
  CRIA_RETURN_IF_ERROR(CheckPrompt(tokens, session_.scheduler_.model()));
  session_.has_logits_ = false;
  // The last token is run even if it is in the cache, because its logits are not kept.
  CRIA_RETURN_IF_ERROR(Begin(tokens.first(tokens.size() - 1), tokens.size(), /*reads=*/true));
  session_.stats_.reused_tokens = session_.cached_;
  session_.ends_forced_ = false;
  session_.ForgetDrafts();
  session_.tokens_.assign(tokens.begin(), tokens.end());
  const auto begin = session_.scheduler_.Now();
  const size_t first = session_.cached_;
  const Status run = RunTo(session_.tokens_.size(), on_prompt, /*num_candidates=*/0);
  session_.stats_.prompt_tokens += session_.cached_ - first;
  session_.stats_.prompt_time += session_.scheduler_.Now() - begin;
  if (!run) session_.tokens_.resize(session_.cached_);
  return run;
}

Status Turn::RunTo(size_t end, const PromptCallback& on_prompt, size_t num_candidates) {
  while (true) {
    if (on_prompt) logits_.Release();
    const bool is_stopped = on_prompt && !on_prompt(session_.cached_, end);
    if (is_stopped || (session_.cached_ < end && options_.is_cancelled())) {
      return Fail(ErrorCode::kCancelled, "stopped while reading the prompt");
    }
    if (session_.cached_ == end) return {};
    session_.has_logits_ = false;
    CRIA_RETURN_IF_ERROR(Grow(end));
    const auto pending =
        std::span(session_.tokens_).subspan(session_.cached_, end - session_.cached_);
    CRIA_ASSIGN_OR_RETURN(
        Scheduler::Progress progress,
        session_.scheduler_.Run(session_.seat_, pending,
                                {.num_candidates = num_candidates, .cancel = options_.cancel}));
    session_.cached_ += progress.num_tokens;
    logits_ = std::move(progress.logits);
    ++num_runs_;
    session_.has_logits_ = session_.cached_ == end;
  }
}

Status Turn::Drop(size_t first, size_t count) {
  if (first > session_.tokens_.size() || count > session_.tokens_.size() - first) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens after the first {} cannot be dropped: the context has {}", count,
                       first, session_.tokens_.size()));
  }
  if (count == 0) return {};
  const auto begin = session_.scheduler_.Now();
  session_.has_logits_ = false;
  CRIA_RETURN_IF_ERROR(Hold());
  const Status dropped = session_.scheduler_.Drop(session_.seat_, first, count, session_.cached_);
  session_.stats_.decode_time += session_.scheduler_.Now() - begin;
  CRIA_RETURN_IF_ERROR(dropped);
  session_.ForgetDrafts();
  const auto position = session_.tokens_.begin() + static_cast<ptrdiff_t>(first);
  session_.tokens_.erase(position, position + static_cast<ptrdiff_t>(count));
  session_.stats_.dropped_tokens += count;
  return {};
}

Status Turn::DropHalfBehind(size_t keep_tokens) {
  if (keep_tokens >= session_.tokens_.size()) {
    return Fail(ErrorCode::kUsage,
                Format("nothing can be dropped: the first {} tokens are kept, and the context "
                       "has {}",
                       keep_tokens, session_.tokens_.size()));
  }
  return Drop(keep_tokens, std::max<size_t>((session_.tokens_.size() - keep_tokens) / 2, 1));
}

Result<LogitRows> Turn::Logits(const LogitRequest& request) {
  if (session_.tokens_.empty()) return Fail(ErrorCode::kUsage, "there is no prompt to go on from");
  const auto begin = session_.scheduler_.Now();
  CRIA_RETURN_IF_ERROR(Hold());
  if (session_.cached_ == session_.tokens_.size()) {
    if (session_.has_logits_) {
      session_.has_logits_ = false;
      LogitRows logits =
          logits_.empty() ? session_.scheduler_.TakeLogits(session_.seat_) : std::move(logits_);
      if (!logits.empty()) return logits;
    }
    CRIA_RETURN_IF_ERROR(
        Begin(std::span(session_.tokens_).first(session_.cached_ - 1), session_.tokens_.size()));
  }
  const size_t pending = session_.tokens_.size() - session_.cached_;
  if (pending == 1) return RunLast(request);
  if (session_.ends_forced_) {
    CRIA_RETURN_IF_ERROR(RunForced(request.num_candidates));
  } else {
    CRIA_RETURN_IF_ERROR(RunTo(session_.tokens_.size(), nullptr, request.num_candidates));
    session_.stats_.prompt_tokens += pending;
    session_.stats_.prompt_time += session_.scheduler_.Now() - begin;
  }
  session_.has_logits_ = false;
  return std::move(logits_);
}

Result<LogitRows> Turn::RunLast(const LogitRequest& request) {
  if (options_.is_cancelled()) {
    return Fail(ErrorCode::kCancelled, "stopped before the next token");
  }
  const auto begin = session_.scheduler_.Now();
  session_.has_logits_ = false;
  session_.ends_forced_ = false;
  CRIA_RETURN_IF_ERROR(Grow(session_.tokens_.size() + request.drafts.size()));
  CRIA_ASSIGN_OR_RETURN(Scheduler::Progress progress,
                        session_.scheduler_.Run(session_.seat_, std::span(session_.tokens_).last(1),
                                                {.drafts = request.drafts,
                                                 .num_candidates = request.num_candidates,
                                                 .cancel = options_.cancel}));
  ++session_.cached_;
  ++session_.stats_.decoded_tokens;
  ++session_.stats_.decoding_forwards;
  session_.stats_.drafted_tokens += progress.num_drafts;
  const auto time = session_.scheduler_.Now() - begin;
  session_.stats_.decode_time += time;
  // If no Forward ran without drafts so far, this one took longer.
  if (progress.num_drafts > 0 && session_.draft_costs_.front() == 0.0) {
    session_.draft_costs_.front() = std::chrono::duration<double>(time).count();
  }
  session_.stats_.undrafted_time += progress.num_drafts == 0 ? time : session_.OneForward();
  return std::move(progress.logits);
}

Status Turn::RunForced(size_t num_candidates) {
  if (session_.cached_ == session_.tokens_.size()) return {};
  const auto begin = session_.scheduler_.Now();
  const size_t first = session_.cached_;
  const size_t runs = num_runs_;
  const Status run = RunTo(session_.tokens_.size(), nullptr, num_candidates);
  session_.ends_forced_ = false;
  session_.stats_.decoded_tokens += session_.cached_ - first;
  session_.stats_.decoding_forwards += num_runs_ - runs;
  const auto time = session_.scheduler_.Now() - begin;
  session_.stats_.decode_time += time;
  session_.stats_.undrafted_time += time;
  return run;
}

std::span<const int32_t> Turn::Draft(size_t max_tokens, Sampler& sampler) {
  Scheduler& scheduler = session_.scheduler_;
  const bool runs_one = has_sequence() && session_.cached_ + 1 == session_.tokens_.size();
  if (session_.drafting_ == nullptr || !runs_one || max_tokens == 0) return {};
  const auto begin = scheduler.Now();
  const size_t others = scheduler.EstimateSeconds(session_.seat_, session_.draft_costs_);
  const std::span<const int32_t> drafts = session_.drafting_->Draft(
      {session_.seat_, session_.tokens_, sampler, session_.drafting_->min_probability()},
      max_tokens, {.seconds = session_.draft_costs_, .other_sequences = others});
  session_.stats_.decode_time += scheduler.Now() - begin;
  return drafts;
}

void Turn::Append(int32_t token, TokenOrigin origin) {
  session_.tokens_.push_back(token);
  if (origin == TokenOrigin::kForced) session_.ends_forced_ = true;
  if (origin != TokenOrigin::kDraft) return;
  session_.scheduler_.Accept(session_.seat_, std::span(session_.tokens_).last(1));
  ++session_.cached_;
  ++session_.stats_.decoded_tokens;
  ++session_.stats_.accepted_tokens;
  session_.stats_.undrafted_time += session_.OneForward();
}

}  // namespace cria
