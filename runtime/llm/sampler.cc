#include "llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/format.h"
#include "ops/vector.h"

namespace cria {
namespace {

// Sums of logits and addends stay finite; NaN is not at most this.
constexpr float kMaxLogitBias = 1e6f;

// Sorts by likelihood; equal logits by their ids.
constexpr auto kMoreLikely = [](const auto& a, const auto& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
};

// The most likely token that may be chosen, the lowest id of equals. Without a mask, its logit may
// be no number.
std::optional<size_t> MostLikely(std::span<const float> logits, const TokenMask* mask) {
  if (mask == nullptr) return ops::ArgMax(logits.data(), logits.size());
  std::optional<size_t> best;
  float largest = -std::numeric_limits<float>::infinity();
  mask->ForEach(logits.size(), [&](size_t id) {
    if (!(logits[id] > largest)) return;
    largest = logits[id];
    best = id;
  });
  return best;
}

Status CheckOption(bool holds, const char* option, double value, const char* range) {
  if (holds) return {};
  return Fail(ErrorCode::kUsage, Format("{} is {}, but must be {}", option, value, range));
}

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

Result<Sampler> Sampler::Create(const SamplerOptions& options, size_t vocab_size) {
  const auto in_unit = [](float value) { return value >= 0.0f && value <= 1.0f; };
  CRIA_RETURN_IF_ERROR(
      CheckOption(std::isfinite(options.repeat_penalty) && options.repeat_penalty > 0.0f,
                  "repeat_penalty", options.repeat_penalty, "above 0"));
  CRIA_RETURN_IF_ERROR(CheckOption(in_unit(options.top_p), "top_p", options.top_p, "0 to 1"));
  CRIA_RETURN_IF_ERROR(CheckOption(in_unit(options.min_p), "min_p", options.min_p, "0 to 1"));
  CRIA_RETURN_IF_ERROR(
      CheckOption(std::isfinite(options.temperature) && options.temperature >= 0.0f, "temperature",
                  options.temperature, "0 or more"));
  for (const LogitBias& bias : options.logit_bias) {
    if (bias.token_id < 0 || static_cast<size_t>(bias.token_id) >= vocab_size) {
      return Fail(ErrorCode::kUsage,
                  Format("logit_bias has token {}, which is outside the vocabulary of {}",
                         bias.token_id, vocab_size));
    }
    CRIA_RETURN_IF_ERROR(
        CheckOption(bias.addend <= kMaxLogitBias, "logit_bias", bias.addend, "at most 1e6"));
  }
  return Sampler(options, vocab_size);
}

Sampler::Sampler(const SamplerOptions& options, size_t vocab_size)
    : options_(options),
      random_(options.seed),
      max_candidates_(options.top_k == 0 ? vocab_size : std::min(options.top_k, vocab_size)) {
  candidates_.reserve(max_candidates_);
  const bool penalizes = options.repeat_penalty != 1.0f;
  changed_.reserve(options.logit_bias.size() +
                   (penalizes ? std::min(options.repeat_last_n, vocab_size) : 0));
  if (penalizes) penalized_.resize((vocab_size + 63) / 64);
}

size_t Sampler::NumCandidates() const {
  const bool raises =
      options_.repeat_penalty < 1.0f ||
      std::ranges::any_of(
          options_.logit_bias, [](const LogitBias& bias) { return bias.addend > 0.0f; });
  const size_t chosen = options_.temperature == 0.0f ? 1 : options_.top_k;
  if (raises || chosen == 0) return 0;
  // So many of the largest may become smaller than all others.
  return chosen + changed_.capacity();
}

Result<int32_t> Sampler::Sample(std::span<float> logits, std::span<const int32_t> history,
                                const TokenMask* mask) {
  const Result<int32_t> token = Peek(logits, history, 0, mask);
  if (token) Advance();
  return token;
}

Result<int32_t> Sampler::Peek(std::span<float> logits, std::span<const int32_t> history,
                              size_t ahead, const TokenMask* mask) {
  AddBias(logits);
  Penalize(logits, history);
  const Result<int32_t> token = Choose(logits, ahead, mask);
  Restore(logits);
  return token;
}

void Sampler::Advance() {
  if (options_.temperature == 0.0f) return;
  RandomNumber(0);
  next_ = (next_ + 1) % upcoming_.size();
  --num_upcoming_;
}

uint64_t Sampler::RandomNumber(size_t ahead) {
  for (; num_upcoming_ <= ahead; ++num_upcoming_) {
    upcoming_[(next_ + num_upcoming_) % upcoming_.size()] = random_();
  }
  return upcoming_[(next_ + ahead) % upcoming_.size()];
}

float& Sampler::Change(std::span<float> logits, int32_t id) {
  const auto index = static_cast<size_t>(id);
  changed_.push_back({index, logits[index]});
  return logits[index];
}

void Sampler::AddBias(std::span<float> logits) {
  for (const LogitBias& bias : options_.logit_bias) Change(logits, bias.token_id) += bias.addend;
}

void Sampler::Restore(std::span<float> logits) {
  // Backwards, because one logit may have been changed several times.
  for (; !changed_.empty(); changed_.pop_back())
    logits[changed_.back().id] = changed_.back().before;
}

std::unexpected<Error> Sampler::FailWithoutCandidate(const TokenMask* mask) const {
  if (mask != nullptr) {
    return Fail(ErrorCode::kUsage,
                options_.logit_bias.empty()
                    ? "the model gives no probability to any token that the constraint allows"
                    : "logit_bias forbids every token that the constraint allows");
  }
  if (options_.logit_bias.empty()) return Fail(ErrorCode::kInternal, "no logit is a number");
  return Fail(ErrorCode::kUsage, "logit_bias forbids every token that could come next");
}

Result<int32_t> Sampler::Choose(std::span<const float> logits, size_t ahead,
                                const TokenMask* mask) {
  if (options_.temperature == 0.0f) {
    const std::optional<size_t> best = MostLikely(logits, mask);
    if (!best || !std::isfinite(logits[*best])) return FailWithoutCandidate(mask);
    return static_cast<int32_t>(*best);
  }
  SelectTopK(logits, mask);
  if (candidates_.empty() || !std::isfinite(candidates_.front().logit)) {
    return FailWithoutCandidate(mask);
  }
  Weigh(/*temperature=*/1.0f);
  KeepTopP();
  KeepMinP();
  Weigh(options_.temperature);
  return Draw(RandomNumber(ahead));
}

void Sampler::Penalize(std::span<float> logits, std::span<const int32_t> history) {
  if (options_.repeat_penalty == 1.0f) return;
  const auto recent = history.last(std::min(history.size(), options_.repeat_last_n));
  const auto word_of = [this](int32_t id) -> uint64_t& {
    return penalized_[static_cast<size_t>(id) / 64];
  };
  for (const int32_t id : recent) {
    // Each token is penalized once, even if it occurred several times.
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(id) % 64);
    if ((word_of(id) & bit) != 0) continue;
    word_of(id) |= bit;
    float& logit = Change(logits, id);
    logit = logit > 0.0f ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
  for (const int32_t id : recent) word_of(id) = 0;
}

void Sampler::SelectTopK(std::span<const float> logits, const TokenMask* mask) {
  candidates_.clear();
  // Most of the vocabulary gets no further than here.
  const auto consider = [&](size_t id) {
    const Candidate candidate = {logits[id], 0.0f, static_cast<int32_t>(id)};
    if (std::isnan(candidate.logit)) return;
    const bool is_full = candidates_.size() == max_candidates_;
    if (!is_full || kMoreLikely(candidate, candidates_.front())) Keep(candidate);
  };
  if (mask == nullptr) {
    for (size_t id = 0; id < logits.size(); ++id) consider(id);
  } else {
    mask->ForEach(logits.size(), consider);
  }
  std::ranges::sort(candidates_, kMoreLikely);
}

void Sampler::Keep(const Candidate& candidate) {
  if (candidates_.size() < max_candidates_) {
    candidates_.push_back(candidate);
    // A heap with the least likely candidate on top: never more than k candidates are sorted.
    if (candidates_.size() == max_candidates_) {
      std::ranges::make_heap(candidates_, kMoreLikely);
    }
    return;
  }
  std::ranges::pop_heap(candidates_, kMoreLikely);
  candidates_.back() = candidate;
  std::ranges::push_heap(candidates_, kMoreLikely);
}

void Sampler::Weigh(float temperature) {
  const float best = candidates_.front().logit;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.logit - best) / temperature);
  }
}

void Sampler::KeepTopP() {
  if (options_.top_p >= 1.0f) return;
  float total = 0.0f;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  float sum = 0.0f;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < options_.top_p * total)) {
    sum += candidates_[kept++].weight;
  }
  candidates_.resize(kept);
}

void Sampler::KeepMinP() {
  // The most likely candidate has weight 1.
  while (candidates_.size() > 1 && candidates_.back().weight < options_.min_p) {
    candidates_.pop_back();
  }
}

int32_t Sampler::Draw(uint64_t random) const {
  float total = 0.0f;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // std::uniform_real_distribution differs between standard libraries, so this uses 53 random bits.
  const double uniform = static_cast<double>(random >> 11) * 0x1p-53;
  const double target = uniform * total;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (target < sum) return candidate.id;
  }
  return candidates_.back().id;
}

}  // namespace cria
