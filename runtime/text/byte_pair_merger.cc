#include "text/byte_pair_merger.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace cria {

uint32_t BytePairMerger::Next(uint32_t position) const {
  const uint32_t second = position + 1;
  if (second == symbols_.size() || symbols_[second] >= 0) return second;
  return position + static_cast<uint32_t>(-symbols_[second]);
}

const Merge* BytePairMerger::RuleAt(uint32_t position) const {
  const uint32_t next = Next(position);
  if (next == symbols_.size()) return nullptr;
  const auto left_id = static_cast<uint32_t>(symbols_[position]);
  const auto right_id = static_cast<uint32_t>(symbols_[next]);
  const auto rules = vocabulary_.merges.subspan(
      vocabulary_.merge_offsets[left_id],
      vocabulary_.merge_offsets[left_id + 1] - vocabulary_.merge_offsets[left_id]);
  const auto rule = std::ranges::lower_bound(rules, right_id, {}, &cria::Merge::right);
  return rule == rules.end() || rule->right != right_id ? nullptr : &*rule;
}

void BytePairMerger::AddCandidate(uint32_t left) {
  const cria::Merge* const rule = RuleAt(left);
  if (rule == nullptr) return;
  const Candidate candidate = (uint64_t{rule->rank} << 32) | left;
  if (candidate >= limit_) return;
  candidates_.push_back(candidate);
  std::ranges::push_heap(candidates_, std::greater());
  if (candidates_.size() < max_candidates_) return;
  // Half of them are enough for a while. In their order, they are a heap, too.
  std::ranges::sort_heap(candidates_, std::greater());
  std::ranges::reverse(candidates_);
  limit_ = candidates_[max_candidates_ / 2];
  candidates_.resize(max_candidates_ / 2);
}

void BytePairMerger::ApplyCandidates() {
  while (!candidates_.empty()) {
    std::ranges::pop_heap(candidates_, std::greater());
    const Candidate candidate = candidates_.back();
    candidates_.pop_back();
    // One of its symbols may have been merged since the candidate was added.
    const auto left = static_cast<uint32_t>(candidate);
    if (symbols_[left] < 0) continue;
    const cria::Merge* const rule = RuleAt(left);
    if (rule == nullptr || rule->rank != candidate >> 32) continue;
    const uint32_t right = Next(left);
    const uint32_t end = Next(right);
    symbols_[right] = -1;
    symbols_[left] = static_cast<int32_t>(rule->merged);
    symbols_[left + 1] = symbols_[end - 1] = -static_cast<int32_t>(end - left);
    AddCandidate(left);
    if (left > 0) {
      const int32_t before = symbols_[left - 1];
      AddCandidate(before < 0 ? left + static_cast<uint32_t>(before) : left - 1);
    }
  }
}

void BytePairMerger::Merge(std::vector<int32_t>& ids, size_t begin) {
  symbols_ = std::span(ids).subspan(begin);
  if (symbols_.size() < 2) return;
  max_candidates_ = std::max(min_candidates_, std::bit_floor(symbols_.size() / 4));
  do {
    limit_ = kNoLimit;
    for (uint32_t i = 0; i < symbols_.size(); i = Next(i)) AddCandidate(i);
    ApplyCandidates();
  } while (limit_ != kNoLimit);
  const auto is_inside = [](int32_t id) { return id < 0; };
  ids.erase(std::remove_if(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), is_inside),
            ids.end());
}

}  // namespace cria
