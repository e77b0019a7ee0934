#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/vocabulary.h"

namespace cria {

// The loop of byte-pair encoding, for both families: of all neighbouring symbols that have a rule,
// the pair with the lowest rank, and of these the leftmost, becomes one symbol, until no rule
// matches. Takes O(n log n) for n symbols. Its working memory has at most two bytes for each symbol
// of a long text, and is kept from call to call.
class BytePairMerger {
 public:
  // The vocabulary must be valid and outlive the merger. At least `min_candidates`, a power of two
  // from 2 on, are kept at a time.
  explicit BytePairMerger(const Vocabulary& vocabulary, size_t min_candidates = size_t{1} << 14)
      : vocabulary_(vocabulary), min_candidates_(min_candidates) {}

  // Merges the symbols ids[begin], ids[begin + 1]… in place, and shortens `ids`.
  void Merge(std::vector<int32_t>& ids, size_t begin);

 private:
  // The rank of a pair's rule, then the position of the left symbol.
  using Candidate = uint64_t;
  static constexpr Candidate kNoLimit = ~Candidate{0};

  uint32_t Next(uint32_t position) const;
  // The rule of the symbol and the next one; null if there is none.
  const cria::Merge* RuleAt(uint32_t position) const;
  // Adds the pair that begins at `left` to `candidates_`, if it has a rule.
  void AddCandidate(uint32_t left);
  void ApplyCandidates();

  const Vocabulary& vocabulary_;
  const size_t min_candidates_;
  // A symbol that was merged has its id at its first place. Its other places are negative; the
  // second and the last one have how many places it has.
  std::span<int32_t> symbols_;
  // A heap; the next rule to be applied is on top. Candidates from `limit_` on are not in it: they
  // are looked for when there are no others.
  std::vector<Candidate> candidates_;
  size_t max_candidates_ = 0;
  Candidate limit_ = kNoLimit;
};

}  // namespace cria
