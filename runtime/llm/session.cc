#include "llm/session.h"

#include <algorithm>
#include <format>

#include "llm/measure/log_sum_exp.h"

namespace cria {
namespace {

using Clock = std::chrono::steady_clock;

bool IsCancelled(const std::atomic<bool>* cancel) {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

}  // namespace

Session::Session(TokenModel& model) : model_(model) { tokens_.reserve(model.context_tokens()); }

void Session::Clear() {
  tokens_.clear();
  cached_ = 0;
}

Status Session::Prefill(std::span<const int32_t> tokens, const std::atomic<bool>* cancel,
                        const PromptCallback& on_prompt) {
  if (tokens.empty())
    return Fail(ErrorCode::kUsage, "the prompt is empty: there is nothing to run");
  if (tokens.size() > model_.context_tokens()) {
    return Fail(ErrorCode::kOutOfRange,
                std::format("the prompt has {} tokens, but the context holds {}", tokens.size(),
                            model_.context_tokens()),
                RemedyKind::kLargerContext);
  }
  const auto cached = std::span(tokens_).first(cached_);
  const size_t common =
      static_cast<size_t>(std::ranges::mismatch(cached, tokens).in1 - cached.begin());
  // The last token is computed again even if it is cached, because its logits are not kept.
  cached_ = std::min(common, tokens.size() - 1);
  stats_.reused_tokens = cached_;
  tokens_.assign(tokens.begin(), tokens.end());
  const auto begin = Clock::now();
  const size_t first = cached_;
  const Status run = RunTo(tokens_.size(), cancel, on_prompt);
  stats_.prompt_tokens += cached_ - first;
  stats_.prompt_time += Clock::now() - begin;
  if (!run) tokens_.resize(cached_);
  return run;
}

Status Session::RunTo(size_t end, const std::atomic<bool>* cancel,
                      const PromptCallback& on_prompt) {
  while (true) {
    const bool is_stopped = on_prompt && !on_prompt(cached_, end);
    if (is_stopped || (cached_ < end && IsCancelled(cancel))) {
      return Fail(ErrorCode::kCancelled, "stopped while reading the prompt");
    }
    if (cached_ == end) return {};
    const size_t count = std::min(end - cached_, model_.chunk_tokens());
    const size_t num_logits = cached_ + count == end ? 1 : 0;
    logits_end_ = 0;
    CRIA_RETURN_IF_ERROR(
        model_.Forward(std::span(tokens_).subspan(cached_, count), cached_, num_logits));
    cached_ += count;
    if (num_logits > 0) logits_end_ = cached_;
  }
}

Status Session::Drop(size_t first, size_t count) {
  if (first > tokens_.size() || count > tokens_.size() - first) {
    return Fail(ErrorCode::kOutOfRange,
                std::format("{} tokens after the first {} cannot be dropped: the context has {}",
                            count, first, tokens_.size()));
  }
  if (count == 0) return {};
  const auto begin = Clock::now();
  // The current logits depend on dropped tokens: invalidate them.
  logits_end_ = 0;
  const Status dropped = DropCached(first, count);
  stats_.decode_time += Clock::now() - begin;
  CRIA_RETURN_IF_ERROR(dropped);
  const auto position = tokens_.begin() + static_cast<ptrdiff_t>(first);
  tokens_.erase(position, position + static_cast<ptrdiff_t>(count));
  stats_.dropped_tokens += count;
  return {};
}

Status Session::DropCached(size_t first, size_t count) {
  const size_t cached = cached_;
  // If this fails, only the tokens before `first` stay valid.
  cached_ = std::min(cached, first);
  if (first + count >= cached) return {};
  KvPages& pages = model_.pages();
  // The sequence may be longer: a Forward that failed has extended it.
  if (Status done = pages.Truncate(TokenModel::kSequence, cached); !done) return done;
  if (Status done = pages.Drop(TokenModel::kSequence, first, count); !done) return done;
  if (Status done = model_.Move(pages.moves()); !done) return done;
  cached_ = cached - count;
  return {};
}

Status Session::DropHalfBehind(size_t keep_tokens) {
  if (keep_tokens >= tokens_.size()) {
    return Fail(ErrorCode::kUsage,
                std::format("nothing can be dropped: the first {} tokens are kept, and the context "
                            "has {}",
                            keep_tokens, tokens_.size()));
  }
  return Drop(keep_tokens, std::max<size_t>((tokens_.size() - keep_tokens) / 2, 1));
}

Result<std::span<float>> Session::Logits() {
  if (tokens_.empty()) return Fail(ErrorCode::kUsage, "there is no prompt to go on from");
  const auto begin = Clock::now();
  // After a failed prefill there are no logits of the last token: compute it again.
  if (logits_end_ != tokens_.size()) cached_ = std::min(cached_, tokens_.size() - 1);
  const size_t pending = tokens_.size() - cached_;
  CRIA_RETURN_IF_ERROR(RunTo(tokens_.size(), nullptr, nullptr));
  CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, model_.Logits(0));
  if (pending > 0) {
    stats_.decoded_tokens += pending;
    stats_.decode_time += Clock::now() - begin;
  }
  return logits;
}

Result<StopReason> Session::Generate(const GenerationOptions& options, Sampler& sampler,
                                     const TokenCallback& on_token) {
  for (size_t generated = 0;; ++generated) {
    if (options.max_tokens != 0 && generated == options.max_tokens) return StopReason::kMaxTokens;
    if (IsCancelled(options.cancel)) return StopReason::kCancelled;
    CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, Logits());
    CRIA_ASSIGN_OR_RETURN(const int32_t token, sampler.Sample(logits, tokens_));
    if (std::ranges::contains(options.stop_token_ids, token)) return StopReason::kStopToken;
    const double log_probability =
        options.log_probabilities ? logits[static_cast<size_t>(token)] - LogSumExp(logits) : 0.0;
    if (tokens_.size() == model_.context_tokens() && options.make_room) {
      if (const Status made = options.make_room(); !made) {
        if (made.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
        return std::unexpected(made.error());
      }
    }
    ++stats_.generated_tokens;
    const bool goes_on = on_token({token, log_probability});
    if (tokens_.size() == model_.context_tokens()) {
      return goes_on ? StopReason::kContextFull : StopReason::kCancelled;
    }
    tokens_.push_back(token);
    if (!goes_on) return StopReason::kCancelled;
  }
}

}  // namespace cria
