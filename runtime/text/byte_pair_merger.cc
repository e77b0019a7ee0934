#include "text/byte_pair_merger.h"

#include <algorithm>

namespace cria {
namespace {

// std::push_heap keeps the greatest on top.
constexpr auto kAppliedLater = [](const auto& a, const auto& b) { return a.order > b.order; };

}  // namespace

bool BytePairMerger::AddCandidate(uint32_t left) {
  const uint32_t right = symbols_[left].next;
  if (right == kNone) return false;
  const uint32_t left_id = symbols_[left].id;
  const uint32_t right_id = symbols_[right].id;
  const auto rules = vocabulary_.merges.subspan(
      vocabulary_.merge_offsets[left_id],
      vocabulary_.merge_offsets[left_id + 1] - vocabulary_.merge_offsets[left_id]);
  const auto rule = std::ranges::lower_bound(rules, right_id, {}, &cria::Merge::right);
  if (rule == rules.end() || rule->right != right_id) return false;
  candidates_.push_back({(uint64_t{rule->rank} << 32) | left, left_id,
                         static_cast<uint32_t>(&*rule - vocabulary_.merges.data())});
  return true;
}

// Whether neither symbol of the candidate has been merged since the candidate was added.
bool BytePairMerger::IsCurrent(const Candidate& candidate) const {
  const Symbol& left = symbols_[static_cast<uint32_t>(candidate.order)];
  return left.next < kMergedAway && left.id == candidate.left_id &&
         symbols_[left.next].id == vocabulary_.merges[candidate.merge].right;
}

void BytePairMerger::Merge(std::vector<int32_t>& ids, size_t begin) {
  const auto num_symbols = static_cast<uint32_t>(ids.size() - begin);
  if (num_symbols < 2) return;
  symbols_.clear();
  candidates_.clear();
  for (uint32_t i = 0; i < num_symbols; ++i) {
    symbols_.push_back({static_cast<uint32_t>(ids[begin + i]), i == 0 ? kNone : i - 1,
                        i + 1 == num_symbols ? kNone : i + 1});
  }
  for (uint32_t i = 0; i + 1 < num_symbols; ++i) AddCandidate(i);
  std::ranges::make_heap(candidates_, kAppliedLater);

  while (!candidates_.empty()) {
    std::ranges::pop_heap(candidates_, kAppliedLater);
    const Candidate candidate = candidates_.back();
    candidates_.pop_back();
    if (!IsCurrent(candidate)) continue;
    const auto left = static_cast<uint32_t>(candidate.order);
    const uint32_t right = symbols_[left].next;
    symbols_[left].id = vocabulary_.merges[candidate.merge].merged;
    symbols_[left].next = symbols_[right].next;
    if (symbols_[right].next != kNone) symbols_[symbols_[right].next].previous = left;
    symbols_[right].next = kMergedAway;
    if (AddCandidate(left)) std::ranges::push_heap(candidates_, kAppliedLater);
    const uint32_t previous = symbols_[left].previous;
    if (previous != kNone && AddCandidate(previous)) {
      std::ranges::push_heap(candidates_, kAppliedLater);
    }
  }

  size_t end = begin;
  for (uint32_t i = 0; i != kNone; i = symbols_[i].next) {
    ids[end++] = static_cast<int32_t>(symbols_[i].id);
  }
  ids.resize(end);
}

}  // namespace cria
