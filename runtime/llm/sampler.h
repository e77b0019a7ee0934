#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "cria/error.h"

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
  size_t repeat_last_n = 64;    // How many tokens count as recent; kWholeContext: all.
  size_t top_k = 40;            // Keep the k most likely; 0 keeps all.
  float top_p = 0.95f;          // Keep the most likely whose sum reaches p (Holtzman et al. 2020);
                                // 1 is neutral.
  float min_p = 0.05f;          // Keep those at least p times as likely as the most likely; 0 is
                                // neutral.
  float temperature = 0.8f;  // 0 takes the most likely token; then, only the bias and the penalty
                             // have an effect.
  uint64_t seed = 0;
};

// The tokens that may be chosen. Others have no probability, as if they were not in the vocabulary.
struct TokenMask {
  std::span<const uint64_t> words;  // [ceil(vocab_size / 64)]: id is bit id % 64 of word id / 64.
  // The tokens that end the text; they may be chosen exactly if it may end, whatever their bits.
  std::span<const int32_t> ends;
  bool may_end = false;

  uint64_t Word(size_t index) const;  // With the bits of `ends` as they hold.
  // Calls `use` with each id that may be chosen, from the lowest on.
  template <typename Use>
  void ForEach(size_t vocab_size, const Use& use) const;
};

// Chooses tokens from logits. The same seed and logits give the same tokens on every machine: of
// equal logits, the lower id comes first, and the random numbers are those of std::mt19937_64.
class Sampler {
  struct Candidate {
    float logit;
    float weight;  // Proportional to the probability.
    int32_t id;
  };

 public:
  // Fails if an option is outside its range; the error names the option.
  static Result<Sampler> Create(const SamplerOptions& options, size_t vocab_size);

  // The most memory of one that has all tokens as candidates.
  static constexpr uint64_t MemoryBytes(size_t vocab_size) {
    return vocab_size * sizeof(Candidate) + vocab_size / 8;
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
  struct ChangedLogit {
    size_t id;
    float before;
  };

  Sampler(const SamplerOptions& options, size_t vocab_size);
  float& Change(std::span<float> logits, int32_t id);
  void AddBias(std::span<float> logits);
  void Penalize(std::span<float> logits, std::span<const int32_t> history);
  void Restore(std::span<float> logits);
  Result<int32_t> Choose(std::span<const float> logits, size_t ahead, const TokenMask* mask);
  std::unexpected<Error> FailWithoutCandidate(const TokenMask* mask) const;
  void SelectTopK(std::span<const float> logits, const TokenMask* mask);
  // Adds a candidate in place of the least likely one if there are max_candidates_.
  void Keep(const Candidate& candidate);
  void Weigh(float temperature);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw(uint64_t random) const;
  // The random number of the choice that is `ahead` choices behind the next one.
  uint64_t RandomNumber(size_t ahead);

  SamplerOptions options_;
  std::mt19937_64 random_;
  // Numbers of random_ for the next choices: a ring that begins at next_.
  std::array<uint64_t, kMaxAhead + 1> upcoming_ = {};
  size_t next_ = 0;
  size_t num_upcoming_ = 0;
  size_t max_candidates_;
  std::vector<Candidate> candidates_;  // Capacity for max_candidates_.
  std::vector<ChangedLogit> changed_;  // Capacity for all that one choice changes.
  // A bit for each id, which is set while it is known to be among the recent tokens; empty if there
  // is no penalty.
  std::vector<uint64_t> penalized_;
};

template <typename Use>
void TokenMask::ForEach(size_t vocab_size, const Use& use) const {
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint64_t rest = Word(i); rest != 0; rest &= rest - 1) {
      const size_t id = 64 * i + static_cast<size_t>(std::countr_zero(rest));
      if (id < vocab_size) use(id);
    }
  }
}

}  // namespace cria
