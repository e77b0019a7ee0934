#include "converter/gguf/llama3_rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

namespace cria {
namespace {

constexpr float kHighFreqFactor = 4.0f;  // Llama 3's value.

double Frequency(size_t index, size_t num_frequencies, double rope_theta) {
  return std::pow(rope_theta, -static_cast<double>(index) / static_cast<double>(num_frequencies));
}

// How much of a frequency is not divided, from 0 to 1. `turns` is the number of its rotations
// within the original context.
double BlendOf(double turns, const RopeScaling& scaling) {
  const double blend = (turns - scaling.low_freq_factor) /
                       (double{scaling.high_freq_factor} - scaling.low_freq_factor);
  return std::clamp(blend, 0.0, 1.0);
}

bool Explains(const RopeScaling& scaling, std::span<const float> factors, double rope_theta) {
  // Factors in files are computed in f32.
  constexpr double kTolerance = 1e-3;
  for (size_t i = 0; i < factors.size(); ++i) {
    const double turns = scaling.original_max_position_embeddings *
                         Frequency(i, factors.size(), rope_theta) / (2.0 * std::numbers::pi);
    const double blend = BlendOf(turns, scaling);
    const double factor = 1.0 / (blend + (1.0 - blend) / scaling.factor);
    if (!(std::abs(factors[i] - factor) <= kTolerance * factor)) return false;
  }
  return true;
}

// A frequency that is blended, and how much of it is not divided.
struct BlendedFrequency {
  double frequency;
  double blend;
};

std::vector<BlendedFrequency> FindBlended(std::span<const float> factors, double rope_theta,
                                          float factor) {
  constexpr double kMargin = 1e-4;
  std::vector<BlendedFrequency> blended;
  for (size_t i = 0; i < factors.size(); ++i) {
    const double blend = (1.0 / factors[i] - 1.0 / factor) / (1.0 - 1.0 / factor);
    if (blend < kMargin || blend > 1.0 - kMargin) continue;
    blended.push_back({Frequency(i, factors.size(), rope_theta), blend});
  }
  return blended;
}

// The blend is linear in the frequency, (n / 2 pi * frequency - low) / (high - low), so two blended
// frequencies determine the ratios n : low : high, but not the values: multiplying all three by the
// same number changes nothing. So low is set to 1, and if only one frequency is blended, high is
// set to Llama 3's value.
std::optional<RopeScaling> Solve(std::span<const float> factors, double rope_theta, float factor) {
  const std::vector<BlendedFrequency> blended = FindBlended(factors, rope_theta, factor);
  if (blended.empty()) return std::nullopt;
  const auto& [frequency, blend] = blended.front();
  double at_zero = 1.0 / (kHighFreqFactor - 1.0);  // low / (high - low)
  if (blended.size() > 1) {
    const double slope = (blend - blended.back().blend) / (frequency - blended.back().frequency);
    at_zero = slope * frequency - blend;
  }
  const double positions = 2.0 * std::numbers::pi * (blend / at_zero + 1.0) / frequency;
  const double high = 1.0 + 1.0 / at_zero;
  if (!(positions >= 1.0 && positions < 1 << 24) || !(high > 1.0 && high < 1e6)) {
    return std::nullopt;
  }
  // high_freq_factor is an integer in practice; rounding removes the error of f32.
  const double whole = std::round(high);
  return RopeScaling{
      .type = RopeScaling::Type::kLlama3,
      .factor = factor,
      .low_freq_factor = 1.0f,
      .high_freq_factor = static_cast<float>(std::abs(high - whole) < 1e-2 ? whole : high),
      .original_max_position_embeddings = static_cast<uint32_t>(std::lround(positions))};
}

}  // namespace

std::optional<RopeScaling> FindLlama3Scaling(std::span<const float> factors, float rope_theta) {
  if (factors.empty() || !(rope_theta > 1.0f)) return std::nullopt;
  const auto [min_factor, max_factor] = std::ranges::minmax(factors);
  if (!(min_factor >= 1.0f) || !std::isfinite(max_factor)) return std::nullopt;
  if (max_factor == 1.0f) return RopeScaling{};
  const RopeScaling llama3 = {.type = RopeScaling::Type::kLlama3,
                              .factor = max_factor,
                              .low_freq_factor = 1.0f,
                              .high_freq_factor = kHighFreqFactor,
                              .original_max_position_embeddings = 8192};
  if (Explains(llama3, factors, rope_theta)) return llama3;
  const auto solved = Solve(factors, rope_theta, max_factor);
  if (solved && Explains(*solved, factors, rope_theta)) return solved;
  return std::nullopt;
}

}  // namespace cria
