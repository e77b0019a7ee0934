#include "llm/forward_times.h"

#include <algorithm>

namespace cria {
namespace {

// While sessions generate, prompts are read in parts with which a Forward takes about this many
// times as long as without.
constexpr double kStretch = 3.0;
constexpr size_t kFirstPromptTokens = 8;
// How much of the difference from what was expected goes into the time of a prompt's token.
constexpr double kLearntShare = 0.25;
// A single Forward that was interrupted counts at most as one that took twice as long.
constexpr double kMaxDifference = 2.0;
// The time of the single tokens alone is measured again after so many Forwards with prompts.
constexpr size_t kMaxWithPrompts = 256;

// More rows than have a time of their own count as the most that have one.
size_t KnownRows(size_t rows) { return std::min(rows, RowCosts::kMaxRows); }

double Seconds(ForwardTimes::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ForwardTimes::ForwardTimes(size_t chunk_tokens) : chunk_tokens_(chunk_tokens) {}

void ForwardTimes::Learn(size_t num_singles, size_t num_prompt_tokens, Duration time) {
  if (num_prompt_tokens == 0) {
    step_time_ += step_time_ == Duration::zero() ? time : (time - step_time_) / 8;
    costs_.Learn(KnownRows(num_singles), Seconds(time));
    num_with_prompts_ = 0;
    return;
  }
  if (num_singles > 0) {
    ++num_with_prompts_;
    LearnPrompt(num_singles, num_prompt_tokens, Seconds(time));
  } else if (num_prompt_tokens > 1) {
    // The first token of a prompt takes about as long as a single one.
    LearnPrompt(1, num_prompt_tokens - 1, Seconds(time));
  }
}

void ForwardTimes::LearnPrompt(size_t num_singles, size_t num_prompt_tokens, double seconds) {
  const double alone = costs_.Seconds(KnownRows(num_singles));
  if (alone == 0.0) return;
  if (seconds < alone) {
    // The single tokens alone were measured while the machine was slow.
    costs_.Learn(KnownRows(num_singles), seconds);
    return;
  }
  // The end of a prompt can be so short that a token of it takes much longer.
  if (2 * num_prompt_tokens < PromptTokensBeside(num_singles)) return;
  // A token more takes at least a part of what each takes.
  const auto num_tokens = static_cast<double>(num_singles + num_prompt_tokens);
  const double added = std::max((seconds - alone) / static_cast<double>(num_prompt_tokens),
                                seconds / (4.0 * num_tokens));
  if (prompt_token_seconds_ == 0.0) {
    prompt_token_seconds_ = added;
    return;
  }
  const double surprise =
      std::clamp(added / prompt_token_seconds_, 1.0 / kMaxDifference, kMaxDifference) - 1.0;
  prompt_token_seconds_ *= 1.0 + kLearntShare * surprise;
}

ForwardTimes::Duration ForwardTimes::Patience(bool has_prompt) const {
  // Who comes too late for a part of a prompt waits longer than for another session's token.
  return step_time_ / (has_prompt ? 2 : 4);
}

size_t ForwardTimes::PromptTokensBeside(size_t num_singles) const {
  const size_t rows = KnownRows(num_singles);
  if (!costs_.Knows(rows) || num_with_prompts_ >= kMaxWithPrompts) return 0;
  if (prompt_token_seconds_ == 0.0) return std::min(kFirstPromptTokens, chunk_tokens_);
  const double tokens = (kStretch - 1.0) * costs_.Seconds(rows) / prompt_token_seconds_;
  return static_cast<size_t>(std::clamp(tokens, 1.0, static_cast<double>(chunk_tokens_)));
}

}  // namespace cria
