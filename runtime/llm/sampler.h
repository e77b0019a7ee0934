#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cria/error.h"
#include "llm/candidates.h"
#include "llm/dry_penalty.h"

namespace cria {

struct LogitBias {
  int32_t token_id;
  float addend;  // At most 1e6; minus infinity forbids the token.
};

// How the next token is chosen. The steps apply in the order of the fields, as in llama.cpp; a step
// at its neutral value is skipped.
struct SamplerOptions {
  static constexpr size_t kWholeContext = std::numeric_limits<size_t>::max();

  std::vector<LogitBias> logit_bias;  // Added to logits; the addends of one token add up.
  float repeat_penalty = 1.0f;  // Positive logits of recent tokens are divided by it, negative ones
                                // multiplied (Keskar et al. 2019); 1 is neutral.
  float presence_penalty = 0.0f;   // Subtracted from the logits of recent tokens.
  float frequency_penalty = 0.0f;  // Subtracted as often as the token is among the recent ones.
  size_t repeat_last_n = 64;       // How many tokens count as recent; kWholeContext: all.
  DryOptions dry;
  // Candidates says what the following steps keep.
  size_t top_k = 40;             // How many of the most likely tokens are candidates; 0: all.
  float typical_p = 1.0f;        // 1 is neutral.
  float top_p = 0.95f;           // 1 is neutral.
  float min_p = 0.05f;           // 0 is neutral.
  float xtc_probability = 0.0f;  // How often ExcludeTop is applied.
  float xtc_threshold = 0.1f;    // Above 0.5 is neutral: at most one token is so likely.
  float temperature = 0.8f;      // 0 takes the most likely token that is left.
  uint64_t seed = 0;

  bool has_penalty() const {
    return repeat_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f;
  }
  bool has_xtc() const { return xtc_probability > 0.0f && xtc_threshold <= 0.5f; }
  // Whether the most likely token is chosen whatever the random number; top_k, top_p and min_p
  // always leave it.
  bool is_greedy() const { return temperature == 0.0f && typical_p >= 1.0f && !has_xtc(); }
};

// Chooses tokens from logits. The same seed and logits give the same tokens on every machine: of
// equal logits, the lower id comes first, and the random numbers are those of std::mt19937_64.
class Sampler {
  struct ChangedLogit {
    size_t id;
    float before;
  };

 public:
  // Fails if an option is outside its range; the error names the option. DRY needs a tokenizer, and
  // searches no more tokens than the context has.
  static Result<Sampler> Create(const SamplerOptions& options, size_t vocab_size,
                                const Tokenizer* tokenizer = nullptr, size_t context_tokens = 0);

  // The most memory of one that has all tokens as candidates.
  static constexpr uint64_t MemoryBytes(size_t vocab_size, size_t context_tokens) {
    // Penalize and PenalizeRepetitions may each change the logit of every token of the context.
    return Candidates::MemoryBytes(vocab_size) + vocab_size / 8 +
           2 * context_tokens * sizeof(ChangedLogit) +
           DryPenalty::MemoryBytes(vocab_size, context_tokens);
  }

  const SamplerOptions& options() const { return options_; }
  // The token that is chosen is among so many largest logits, if there is no mask; 0: it may be
  // among the others, because an option can raise these.
  size_t NumCandidates() const;

  // Maximum of Peek's `ahead`.
  static constexpr size_t kMaxAhead = 32;

  // Chooses one id. `logits`, [vocab_size], are changed meanwhile and are the same afterwards;
  // `history` is the context so far. Without a mask, every token may be chosen. Allocates nothing.
  // Fails if no logit of a token that may be chosen is finite.
  Result<int32_t> Sample(std::span<float> logits, std::span<const int32_t> history,
                         const TokenMask* mask = nullptr);
  // Returns what Sample would choose from these logits after `ahead` more calls of it: each choice
  // has its own random number. The next call of Sample is not affected.
  Result<int32_t> Peek(std::span<float> logits, std::span<const int32_t> history, size_t ahead,
                       const TokenMask* mask = nullptr);
  // Goes on to the next random number, as Sample does.
  void Advance();

 private:
  Sampler(const SamplerOptions& options, size_t vocab_size, std::optional<DryPenalty> dry);
  float& Change(std::span<float> logits, int32_t id);
  void AddBias(std::span<float> logits);
  void Penalize(std::span<float> logits, std::span<const int32_t> history);
  void PenalizeRepetitions(std::span<float> logits, std::span<const int32_t> history);
  void Restore(std::span<float> logits);
  Result<int32_t> Choose(std::span<const float> logits, size_t ahead, const TokenMask* mask);
  std::unexpected<Error> FailWithoutCandidate(const TokenMask* mask) const;
  // The random number of the choice that is `ahead` choices behind the next one.
  uint64_t RandomNumber(size_t ahead);

  SamplerOptions options_;
  std::mt19937_64 random_;
  // Numbers of random_ for the next choices: a ring that begins at next_.
  std::array<uint64_t, kMaxAhead + 1> upcoming_ = {};
  size_t next_ = 0;
  size_t num_upcoming_ = 0;
  Candidates candidates_;
  std::optional<DryPenalty> dry_;
  std::vector<ChangedLogit> changed_;  // Capacity for all that one choice changes.
  // A bit for each id, which is set while it is known to be among the recent tokens; empty if there
  // is no penalty.
  std::vector<uint64_t> penalized_;
};

}  // namespace cria
