#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/vocabulary.h"

namespace cria {

// The loop of byte-pair encoding, for both families: of all neighbouring symbols that have a rule,
// the pair with the lowest rank, and of these the leftmost, becomes one symbol, until no rule
// matches. Takes O(n log n) for n symbols. Keeps its working memory from call to call.
class BytePairMerger {
 public:
  // The vocabulary must be valid and outlive the merger.
  explicit BytePairMerger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Merges the symbols ids[begin], ids[begin + 1]… in place, and shortens `ids`.
  void Merge(std::vector<int32_t>& ids, size_t begin);

 private:
  struct Symbol {
    uint32_t id;
    uint32_t previous;  // Index of the symbol before, or kNone.
    uint32_t next;  // Index of the symbol after, or kNone; kMergedAway if this symbol was merged
                    // into its left one.
  };
  struct Candidate {
    uint64_t order;  // Rank, then the position of the left symbol.
    uint32_t left_id;
    uint32_t merge;  // Index of the rule.
  };
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kMergedAway = 0xFFFFFFFE;

  // Adds the pair that begins with the symbol at `left` to `candidates_`, if it has a rule.
  bool AddCandidate(uint32_t left);
  bool IsCurrent(const Candidate& candidate) const;

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // A heap; the next rule to be applied is on top.
};

}  // namespace cria
