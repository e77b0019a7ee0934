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
  // How many tokens are searched for repetitions.
  size_t last_n = std::numeric_limits<size_t>::max();
  // Texts that no repetition contains; unset: kDryBreakers.
  std::optional<std::vector<std::string>> sequence_breakers;

  bool is_on() const { return multiplier != 0.0f && last_n > 0; }
};

// The texts that DryOptions has unless others are given.
std::span<const std::string> DefaultDryBreakers();

// Finds tokens that would make a repetition longer. If the newest tokens of a context, n of them
// and n >= allowed_length, were there before, the token that followed them gets a penalty of
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

  size_t max_tokens() const { return max_tokens_; }

  // Calls `penalize` with each token that has a penalty, and the penalty. `context` may be longer
  // than `context_tokens`, whose last ones are then searched. Takes time in proportion to the
  // tokens that are searched; allocates nothing.
  template <typename Penalize>
  void ForEach(std::span<const int32_t> context, const Penalize& penalize) {
    for (const Repetition& repetition : Find(context)) {
      penalize(repetition.token, PenaltyOf(repetition.length));
    }
  }

 private:
  DryPenalty(const DryOptions& options, DryBreakers breakers, size_t max_tokens);

  // The longest repetition that each token goes on with, as far as it has a penalty.
  std::span<const Repetition> Find(std::span<const int32_t> context);
  // For each k, sets how many of the newest tokens are also before the last k ones; at most
  // `most`.
  void CountRepeated(std::span<const int32_t> tokens, size_t most);
  float PenaltyOf(uint32_t length) const;

  float multiplier_;
  float base_;
  size_t allowed_length_;
  DryBreakers breakers_;
  size_t max_tokens_;                    // How many are searched.
  std::vector<Repetition> repetitions_;  // Capacity for max_tokens_.
};

}  // namespace cria
