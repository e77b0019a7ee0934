#include "llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/format.h"
#include "ops/vector.h"

namespace cria {
namespace {

// Sums of logits and addends stay finite; NaN is not at most this.
constexpr float kMaxLogitBias = 1e6f;
constexpr float kMaxPenalty = 1000.0f;

// Another number for the same choice: the output function of SplitMix64 (Steele et al. 2014).
uint64_t SecondNumber(uint64_t random) {
  random = (random ^ (random >> 30)) * 0xBF58476D1CE4E5B9u;
  random = (random ^ (random >> 27)) * 0x94D049BB133111EBu;
  return random ^ (random >> 31);
}

// The most likely token that may be chosen, the lowest id of equals. Without a mask, its logit may
// be no number.
std::optional<size_t> MostLikely(std::span<const float> logits, const TokenMask* mask) {
  const size_t most_likely = ops::ArgMax(logits.data(), logits.size());
  if (mask == nullptr) return most_likely;
  std::optional<size_t> best;
  float largest = -std::numeric_limits<float>::infinity();
  // Within the strings of a constraint, the most likely token is nearly always allowed.
  if (mask->Has(most_likely) && logits[most_likely] > largest) return most_likely;
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

Status CheckNumbers(const SamplerOptions& options) {
  const auto check = [](const char* name, float value, float min, float max, const char* range) {
    return CheckOption(value >= min && value <= max, name, value, range);
  };
  const auto check_unit = [&](const char* name, float value) {
    return check(name, value, 0.0f, 1.0f, "0 to 1");
  };
  const auto check_penalty = [&](const char* name, float value) {
    return check(name, value, -kMaxPenalty, kMaxPenalty, "-1000 to 1000");
  };
  CRIA_RETURN_IF_ERROR(
      CheckOption(std::isfinite(options.repeat_penalty) && options.repeat_penalty > 0.0f,
                  "repeat_penalty", options.repeat_penalty, "above 0"));
  CRIA_RETURN_IF_ERROR(check_penalty("presence_penalty", options.presence_penalty));
  CRIA_RETURN_IF_ERROR(check_penalty("frequency_penalty", options.frequency_penalty));
  CRIA_RETURN_IF_ERROR(
      check("dry_multiplier", options.dry.multiplier, 0.0f, kMaxPenalty, "0 to 1000"));
  CRIA_RETURN_IF_ERROR(check("dry_base", options.dry.base, 1.0f, kMaxPenalty, "1 to 1000"));
  CRIA_RETURN_IF_ERROR(check_unit("typical_p", options.typical_p));
  CRIA_RETURN_IF_ERROR(check_unit("top_p", options.top_p));
  CRIA_RETURN_IF_ERROR(check_unit("min_p", options.min_p));
  CRIA_RETURN_IF_ERROR(check_unit("xtc_probability", options.xtc_probability));
  CRIA_RETURN_IF_ERROR(check_unit("xtc_threshold", options.xtc_threshold));
  return CheckOption(std::isfinite(options.temperature) && options.temperature >= 0.0f,
                     "temperature", options.temperature, "0 or more");
}

Status CheckBias(std::span<const LogitBias> biases, size_t vocab_size) {
  for (const LogitBias& bias : biases) {
    if (bias.token_id < 0 || static_cast<size_t>(bias.token_id) >= vocab_size) {
      return Fail(ErrorCode::kUsage,
                  Format("logit_bias has token {}, which is outside the vocabulary of {}",
                         bias.token_id, vocab_size));
    }
    CRIA_RETURN_IF_ERROR(
        CheckOption(bias.addend <= kMaxLogitBias, "logit_bias", bias.addend, "at most 1e6"));
  }
  return {};
}

}  // namespace

Result<Sampler> Sampler::Create(const SamplerOptions& options, size_t vocab_size,
                                const Tokenizer* tokenizer, size_t context_tokens) {
  CRIA_RETURN_IF_ERROR(CheckNumbers(options));
  CRIA_RETURN_IF_ERROR(CheckBias(options.logit_bias, vocab_size));
  std::optional<DryPenalty> dry;
  if (options.dry.is_on()) {
    if (tokenizer == nullptr) {
      return Fail(ErrorCode::kUsage, "dry_multiplier is not 0, but there is no tokenizer");
    }
    CRIA_ASSIGN_OR_RETURN(dry, DryPenalty::Create(options.dry, *tokenizer, context_tokens));
  }
  return Sampler(options, vocab_size, std::move(dry));
}

Sampler::Sampler(const SamplerOptions& options, size_t vocab_size, std::optional<DryPenalty> dry)
    : options_(options),
      random_(options.seed),
      candidates_(options.top_k == 0 ? vocab_size : std::min(options.top_k, vocab_size)),
      dry_(std::move(dry)) {
  const bool penalizes = options.has_penalty();
  changed_.reserve(options.logit_bias.size() +
                   (penalizes ? std::min(options.repeat_last_n, vocab_size) : 0) +
                   (dry_ ? std::min(dry_->max_tokens(), vocab_size) : 0));
  if (penalizes) penalized_.resize((vocab_size + 63) / 64);
}

size_t Sampler::NumCandidates() const {
  const bool raises =
      options_.repeat_penalty < 1.0f || options_.presence_penalty < 0.0f ||
      options_.frequency_penalty < 0.0f ||
      std::ranges::any_of(
          options_.logit_bias, [](const LogitBias& bias) { return bias.addend > 0.0f; });
  const size_t chosen = options_.is_greedy() ? 1 : options_.top_k;
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
  PenalizeRepetitions(logits, history);
  const Result<int32_t> token = Choose(logits, ahead, mask);
  Restore(logits);
  return token;
}

void Sampler::Advance() {
  if (options_.is_greedy()) return;
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
  if (options_.is_greedy()) {
    const std::optional<size_t> best = MostLikely(logits, mask);
    if (!best || !std::isfinite(logits[*best])) return FailWithoutCandidate(mask);
    return static_cast<int32_t>(*best);
  }
  if (!candidates_.Select(logits, mask)) return FailWithoutCandidate(mask);
  candidates_.KeepTypical(options_.typical_p);
  candidates_.KeepTopP(options_.top_p);
  candidates_.KeepMinP(options_.min_p);
  const uint64_t random = RandomNumber(ahead);
  if (options_.has_xtc() && UnitNumber(SecondNumber(random)) < options_.xtc_probability) {
    candidates_.ExcludeTop(options_.xtc_threshold);
  }
  if (options_.temperature == 0.0f) return candidates_.most_likely();
  return candidates_.Draw(options_.temperature, random);
}

void Sampler::Penalize(std::span<float> logits, std::span<const int32_t> history) {
  if (!options_.has_penalty()) return;
  const auto recent = history.last(std::min(history.size(), options_.repeat_last_n));
  const auto word_of = [this](int32_t id) -> uint64_t& {
    return penalized_[static_cast<size_t>(id) / 64];
  };
  for (const int32_t id : recent) {
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(id) % 64);
    if ((word_of(id) & bit) == 0) {
      word_of(id) |= bit;
      float& logit = Change(logits, id);
      logit = logit > 0.0f ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
      logit -= options_.presence_penalty;
    }
    logits[static_cast<size_t>(id)] -= options_.frequency_penalty;
  }
  for (const int32_t id : recent) word_of(id) = 0;
}

void Sampler::PenalizeRepetitions(std::span<float> logits, std::span<const int32_t> history) {
  if (!dry_) return;
  dry_->ForEach(history, [&](int32_t token, float penalty) { Change(logits, token) -= penalty; });
}

}  // namespace cria
