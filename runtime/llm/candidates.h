#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cria {

// The tokens that may be chosen. Others have no probability, as if they were not in the vocabulary.
struct TokenMask {
  std::span<const uint64_t> words;  // [ceil(vocab_size / 64)]: id is bit id % 64 of word id / 64.
  // The tokens that end the text; they may be chosen exactly if it may end, whatever their bits.
  std::span<const int32_t> ends;
  bool may_end = false;

  uint64_t Word(size_t index) const;  // With the bits of `ends` as they hold.
  bool Has(size_t id) const { return (Word(id / 64) >> (id % 64) & 1) != 0; }
  // Calls `use` with each id that may be chosen, from the lowest on.
  template <typename Use>
  void ForEach(size_t vocab_size, const Use& use) const;
};

// The tokens among which a sampler chooses, the most likely first; of equal ones, the lower id.
// Each step leaves at least one token.
class Candidates {
  struct Candidate {
    float logit;
    float weight;  // Proportional to the probability.
    int32_t id;
  };

 public:
  // There will be at most `max_count` tokens.
  explicit Candidates(size_t max_count);

  static constexpr uint64_t MemoryBytes(size_t max_count) { return max_count * sizeof(Candidate); }

  // Begins with the most likely tokens of `logits`, [vocab_size], that `mask` allows; null allows
  // all. Returns false if no logit of these is finite; then no other step may follow.
  bool Select(std::span<const float> logits, const TokenMask* mask);

  // Keeps the tokens whose information is nearest to the entropy, until the sum of their
  // probabilities is above p (locally typical sampling, Meister et al. 2022).
  void KeepTypical(float p);
  // Keeps the most likely tokens until the sum of their probabilities is at least p (Holtzman et
  // al. 2020).
  void KeepTopP(float p);
  // Keeps the tokens that are at least p times as likely as the most likely one.
  void KeepMinP(float p);
  // Removes the tokens whose probability is at least the threshold, except for the least likely one
  // of them ("exclude top choices", p-e-w 2024).
  void ExcludeTop(float threshold);

  int32_t most_likely() const { return candidates_.front().id; }
  // Draws a token at this temperature, which must be above 0, by 64 random bits.
  int32_t Draw(float temperature, uint64_t random);

 private:
  // Adds a candidate in place of the least likely one if there are max_count_.
  void Keep(const Candidate& candidate);
  // Afterwards, the most likely candidate has the weight 1.
  void Weigh(float temperature);
  float TotalWeight() const;

  size_t max_count_;
  std::vector<Candidate> candidates_;  // Capacity for max_count_.
};

// A number of [0, 1) that has the first 53 of the random bits.
// std::uniform_real_distribution differs between standard libraries.
inline double UnitNumber(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

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
