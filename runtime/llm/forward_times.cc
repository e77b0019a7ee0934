#include "llm/forward_times.h"

#include <algorithm>

namespace cria {
namespace {

// While sessions generate, prompts are read in parts with which a Forward takes about this many
// times as long as without.
constexpr double kStretch = 3.0;
constexpr size_t kFirstPromptTokens = 8;

}  // namespace

ForwardTimes::ForwardTimes(size_t chunk_tokens)
    : chunk_tokens_(chunk_tokens), prompt_tokens_(std::min(kFirstPromptTokens, chunk_tokens)) {}

void ForwardTimes::Learn(size_t num_tokens, Duration time, bool has_prompt, bool delays_others) {
  if (!has_prompt) {
    step_time_ += step_time_ == Duration::zero() ? time : (time - step_time_) / 8;
    costs_.Learn(num_tokens, std::chrono::duration<double>(time).count());
  } else if (delays_others && step_time_ > Duration::zero()) {
    const double wanted = kStretch * static_cast<double>(step_time_.count());
    const double factor = std::clamp(wanted / static_cast<double>(time.count()), 0.5, 1.5);
    const auto tokens = static_cast<size_t>(factor * static_cast<double>(prompt_tokens_));
    prompt_tokens_ = std::clamp<size_t>(tokens, 1, chunk_tokens_);
  }
}

ForwardTimes::Duration ForwardTimes::Patience(bool has_prompt) const {
  // Who comes too late for a part of a prompt waits longer than for another session's token.
  return step_time_ / (has_prompt ? 2 : 4);
}

}  // namespace cria
