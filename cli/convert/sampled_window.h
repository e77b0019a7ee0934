#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cria::cli {

// The tokens with which a template, or the BOS token alone, opens and ends turns.
struct Turns {
  std::vector<int32_t> opening;  // Before what a user says.
  // From the end of what a user says to where the answer begins; empty without a template.
  std::vector<int32_t> answer;
};

// A text that is written token after token: what a model samples, and around it what the template
// writes. The arguments of the constructor must outlive it.
class SampledWindow {
 public:
  SampledWindow(const Turns& turns, std::span<const int32_t> stop_tokens, size_t vocab_size,
                size_t seed)
      : turns_(turns), stop_tokens_(stop_tokens), pending_(turns.opening) {
    // Without anything before it, the first token could be any.
    if (pending_.empty()) pending_.push_back(static_cast<int32_t>(seed % vocab_size));
  }

  std::span<const int32_t> tokens() const { return tokens_; }
  bool needs_logits() const { return pending_.empty(); }
  // The next token: that of the template, or else `sampled`.
  int32_t Next(int32_t sampled) {
    if (pending_.empty()) {
      Take(sampled);
    } else {
      tokens_.push_back(pending_.front());
      pending_.erase(pending_.begin());
    }
    return tokens_.back();
  }

 private:
  void Take(int32_t token) {
    tokens_.push_back(token);
    const bool ends_message = !is_answer_ && !turns_.answer.empty() && token == turns_.answer[0];
    if (ends_message) {
      pending_.assign(turns_.answer.begin() + 1, turns_.answer.end());
      is_answer_ = true;
    } else if (std::ranges::contains(stop_tokens_, token)) {
      pending_ = turns_.opening;
      is_answer_ = false;
    }
  }

  const Turns& turns_;
  std::span<const int32_t> stop_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pending_;
  bool is_answer_ = false;
};

}  // namespace cria::cli
