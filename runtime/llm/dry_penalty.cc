#include "llm/dry_penalty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace cria {

std::span<const std::string> DefaultDryBreakers() {
  static const std::array<std::string, 4> kTexts = {"\n", ":", "\"", "*"};
  return kTexts;
}

Result<DryPenalty> DryPenalty::Create(const DryOptions& options, const Tokenizer& tokenizer,
                                      size_t context_tokens) {
  CRIA_ASSIGN_OR_RETURN(
      DryBreakers breakers,
      DryBreakers::Create(tokenizer, options.sequence_breakers ? *options.sequence_breakers
                                                               : DefaultDryBreakers()));
  return DryPenalty(options, std::move(breakers), std::min(options.last_n, context_tokens));
}

DryPenalty::DryPenalty(const DryOptions& options, DryBreakers breakers, size_t max_tokens)
    : multiplier_(options.multiplier),
      base_(options.base),
      allowed_length_(options.allowed_length),
      breakers_(std::move(breakers)),
      max_tokens_(max_tokens) {
  repetitions_.reserve(max_tokens);
}

std::span<const DryPenalty::Repetition> DryPenalty::Find(std::span<const int32_t> context) {
  const std::span<const int32_t> tokens = context.last(std::min(context.size(), max_tokens_));
  if (tokens.size() <= allowed_length_) return {};
  const size_t most = breakers_.CountBehind(tokens);
  if (most < allowed_length_) return {};
  CountRepeated(tokens, most);
  size_t count = 0;
  for (size_t k = 1; k < tokens.size(); ++k) {
    const uint32_t length = repetitions_[k].length;
    const int32_t next = tokens[tokens.size() - k];
    if (length < allowed_length_ || breakers_.IsBreaker(next)) continue;
    repetitions_[count++] = {next, length};
  }
  const auto found = std::span(repetitions_).first(count);
  std::ranges::sort(found, [](const Repetition& a, const Repetition& b) {
    return a.token < b.token || (a.token == b.token && a.length > b.length);
  });
  const auto rest = std::ranges::unique(found, {}, &Repetition::token);
  return found.first(count - rest.size());
}

// The Z algorithm (Gusfield 1997), from the newest token backwards.
void DryPenalty::CountRepeated(std::span<const int32_t> tokens, size_t most) {
  const size_t size = tokens.size();
  const auto newest = [tokens, size](size_t i) { return tokens[size - 1 - i]; };
  repetitions_.resize(size);
  // The newest `end - begin` tokens are also the ones from `begin` on, counted backwards.
  size_t begin = 0;
  size_t end = 0;
  for (size_t k = 1; k < size; ++k) {
    const size_t known = k < end ? repetitions_[k - begin].length : 0;
    size_t length = std::min(known, k < end ? end - k : 0);
    if (k + length >= end) {
      while (k + length < size && newest(length) == newest(k + length)) ++length;
      begin = k;
      end = k + length;
    }
    repetitions_[k].length = static_cast<uint32_t>(length);
  }
  for (Repetition& repetition : repetitions_) {
    repetition.length = std::min(repetition.length, static_cast<uint32_t>(most));
  }
}

float DryPenalty::PenaltyOf(uint32_t length) const {
  // A logit from which this is subtracted stays finite.
  constexpr double kMost = 1e30;
  const double exponent = static_cast<double>(length) - static_cast<double>(allowed_length_);
  return static_cast<float>(
      std::min(kMost, static_cast<double>(multiplier_) * std::pow(double{base_}, exponent)));
}

}  // namespace cria
