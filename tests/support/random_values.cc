#include "support/random_values.h"

namespace cria::support {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014). Its state is a counter, so an output does not depend on
// the outputs before it.
uint64_t SplitMix64(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

void FillNormal(uint64_t seed, uint64_t first, std::span<float> values) {
  // The sum of four uniform numbers of 16 bits has mean 2 * 65535 and variance (2^32 - 1) / 3.
  constexpr int32_t kMean = 2 * 65535;
  constexpr float kInverseDeviation = 2.6428996e-5f;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = SplitMix64(seed, first + i);
    const auto sum = static_cast<int32_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                          ((bits >> 32) & 0xffff) + (bits >> 48));
    values[i] = static_cast<float>(sum - kMean) * kInverseDeviation;
  }
}

uint64_t SeedFor(uint64_t seed, std::string_view name) {
  for (const char c : name) seed = SplitMix64(seed, static_cast<unsigned char>(c));
  return seed;
}

}  // namespace cria::support
