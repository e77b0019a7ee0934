#include "llm/candidates.h"

#include <algorithm>
#include <cmath>

namespace cria {
namespace {

// Sorts by likelihood; equal logits by their ids.
constexpr auto kMoreLikely = [](const auto& a, const auto& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
};

}  // namespace

uint64_t TokenMask::Word(size_t index) const {
  uint64_t word = words[index];
  for (const int32_t id : ends) {
    if (static_cast<size_t>(id) / 64 != index) continue;
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(id) % 64);
    word = may_end ? word | bit : word & ~bit;
  }
  return word;
}

Candidates::Candidates(size_t max_count) : max_count_(max_count) { candidates_.reserve(max_count); }

bool Candidates::Select(std::span<const float> logits, const TokenMask* mask) {
  candidates_.clear();
  // Most of the vocabulary gets no further than here.
  const auto consider = [&](size_t id) {
    const Candidate candidate = {logits[id], 0.0f, static_cast<int32_t>(id)};
    if (std::isnan(candidate.logit)) return;
    const bool is_full = candidates_.size() == max_count_;
    if (!is_full || kMoreLikely(candidate, candidates_.front())) Keep(candidate);
  };
  if (mask == nullptr) {
    for (size_t id = 0; id < logits.size(); ++id) consider(id);
  } else {
    mask->ForEach(logits.size(), consider);
  }
  std::ranges::sort(candidates_, kMoreLikely);
  if (candidates_.empty() || !std::isfinite(candidates_.front().logit)) return false;
  Weigh(/*temperature=*/1.0f);
  return true;
}

void Candidates::Keep(const Candidate& candidate) {
  if (candidates_.size() < max_count_) {
    candidates_.push_back(candidate);
    // A heap with the least likely candidate on top: never more than k candidates are sorted.
    if (candidates_.size() == max_count_) std::ranges::make_heap(candidates_, kMoreLikely);
    return;
  }
  std::ranges::pop_heap(candidates_, kMoreLikely);
  candidates_.back() = candidate;
  std::ranges::push_heap(candidates_, kMoreLikely);
}

void Candidates::Weigh(float temperature) {
  const float best = candidates_.front().logit;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.logit - best) / temperature);
  }
}

float Candidates::TotalWeight() const {
  float total = 0.0f;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

void Candidates::KeepTypical(float p) {
  if (p >= 1.0f) return;
  const float best = candidates_.front().logit;
  const float total = TotalWeight();
  // The entropy is the mean of -log(weight / total).
  float weighted = 0.0f;
  for (const Candidate& candidate : candidates_) {
    // The logit may be minus infinity.
    if (candidate.weight > 0.0f) weighted += candidate.weight * (candidate.logit - best);
  }
  // A token with this logit would have the entropy as its information.
  const float typical = best + weighted / total;
  std::ranges::sort(candidates_, [typical](const Candidate& a, const Candidate& b) {
    const float a_shift = std::abs(a.logit - typical);
    const float b_shift = std::abs(b.logit - typical);
    return a_shift < b_shift || (a_shift == b_shift && kMoreLikely(a, b));
  });
  float sum = 0.0f;
  size_t kept = 0;
  while (kept < candidates_.size() && sum <= p * total) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
  std::ranges::sort(candidates_, kMoreLikely);
  Weigh(/*temperature=*/1.0f);
}

void Candidates::KeepTopP(float p) {
  if (p >= 1.0f) return;
  const float total = TotalWeight();
  float sum = 0.0f;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < p * total)) {
    sum += candidates_[kept++].weight;
  }
  candidates_.resize(kept);
}

void Candidates::KeepMinP(float p) {
  while (candidates_.size() > 1 && candidates_.back().weight < p) candidates_.pop_back();
}

void Candidates::ExcludeTop(float threshold) {
  const float least = threshold * TotalWeight();
  size_t excluded = 0;
  while (excluded + 1 < candidates_.size() && candidates_[excluded + 1].weight >= least) ++excluded;
  candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(excluded));
}

int32_t Candidates::Draw(float temperature, uint64_t random) {
  Weigh(temperature);
  const double target = UnitNumber(random) * TotalWeight();
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (target < sum) return candidate.id;
  }
  return candidates_.back().id;
}

}  // namespace cria
