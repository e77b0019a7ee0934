#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cria/error.h"
#include "llm/dry_breakers.h"

namespace cria {

// Options of DRY, "don't repeat yourself" (p-e-w 2024), with llama.cpp's names and defaults.
struct DryOptions {
  float multiplier = 0.0f;    // 0: there is no penalty.
  float base = 1.75f;         // At least 1.
  size_t allowed_length = 2;  // Shorter repetitions are not penalized.
  // How many of the newest tokens are searched for repetitions.
  size_t last_n = std::numeric_limits<size_t>::max();
  // Texts that no repetition contains; unset: kDryBreakers.
  std::optional<std::vector<std::string>> sequence_breakers;

  bool is_on() const { return multiplier != 0.0f && last_n > 0; }
};

// The texts that DryOptions has unless others are given.
std::span<const std::string> DefaultDryBreakers();

// Finds tokens that would make a repetition longer. If the newest n tokens of a context, with
// n >= allowed_length, occurred before, the token that followed them there has a penalty of
// multiplier * base^(n - allowed_length).
class DryPenalty {
  struct Repetition {
    int32_t token;
    uint32_t length;
  };

 public:
  // `options` must be on. Fails as DryBreakers::Create does.
  static Result<DryPenalty> Create(const DryOptions& options, const Tokenizer& tokenizer,
                                   size_t context_tokens);

  static constexpr uint64_t MemoryBytes(size_t vocab_size, size_t context_tokens) {
    return DryBreakers::MemoryBytes(vocab_size) + context_tokens * sizeof(Repetition);
  }

  // How many tokens are searched at most.
  size_t max_tokens() const { return max_tokens_; }

  // Calls `penalize` with each token that has a penalty, and the penalty. Searches the last
  // max_tokens() of `context`. Allocates nothing.
  template <typename Penalize>
  void ForEach(std::span<const int32_t> context, const Penalize& penalize) {
    for (const Repetition& repetition : Find(context)) {
      penalize(repetition.token, PenaltyOf(repetition.length));
    }
  }

 private:
  DryPenalty(const DryOptions& options, DryBreakers breakers, size_t max_tokens);

  // Returns the tokens that have a penalty, each once, with the longest repetition that it would
  // continue.
  std::span<const Repetition> Find(std::span<const int32_t> context);
  // Sets the length of repetitions_[k], k >= 1, to the number of newest tokens that are also the
  // tokens before the last k, at most `most`.
  void CountRepeated(std::span<const int32_t> tokens, size_t most);
  float PenaltyOf(uint32_t length) const;

  float multiplier_;
  float base_;
  size_t allowed_length_;
  DryBreakers breakers_;
  size_t max_tokens_;
  std::vector<Repetition> repetitions_;  // Capacity for max_tokens_.
};

}  // namespace cria
