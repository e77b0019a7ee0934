#include "reference/reference_rope.h"

#include <cmath>
#include <numbers>

namespace cria::reference {
namespace {

// Llama 3.1: wavelengths that fit the original context at least `high_freq_factor` times stay,
// those that fit at most `low_freq_factor` times are stretched, and between them the two are
// blended.
double ScaleLlama3(double frequency, const ReferenceRopeScaling& scaling) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double turns = static_cast<double>(scaling.original_max_position_embeddings) / wavelength;
  if (turns > scaling.high_freq_factor) return frequency;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

// "Dynamic NTK", in the appendix of Peng et al. 2023 and in transformers: with s the length over
// the trained one, theta grows by (factor s - (factor - 1))^(d / (d - 2)).
double DynamicTheta(const ReferenceConfig& config, const ReferenceAttention& attention,
                    size_t context) {
  if (context <= config.max_position_embeddings) return attention.rope_theta;
  const double s =
      static_cast<double>(context) / static_cast<double>(config.max_position_embeddings);
  const double factor = attention.rope_scaling.factor;
  const auto d = static_cast<double>(config.turned_channels());
  return attention.rope_theta * std::pow(factor * s - factor + 1.0, d / (d - 2.0));
}

// Peng et al. 2023, "NTK by parts", as their code has it: the share of interpolation rises linearly
// with the pair's index, from the pair that turns beta_fast times in the trained context to that
// which turns beta_slow times. A pair i turns L theta^(-2i/d) / 2 pi times, so that
// i = d ln(L / (2 pi turns)) / (2 ln theta).
double ScaleYarn(double frequency, size_t pair, size_t channels,
                 const ReferenceAttention& attention) {
  const ReferenceRopeScaling& scaling = attention.rope_scaling;
  const auto d = static_cast<double>(channels);
  const auto trained = static_cast<double>(scaling.original_max_position_embeddings);
  const auto pair_of = [&](double turns) {
    return d * std::log(trained / (2.0 * std::numbers::pi * turns)) /
           (2.0 * std::log(attention.rope_theta));
  };
  double low = pair_of(scaling.beta_fast);
  double high = pair_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  if (low < 0.0) low = 0.0;
  if (high > d - 1.0) high = d - 1.0;
  if (low == high) high += 0.001;
  double interpolated = (static_cast<double>(pair) - low) / (high - low);
  if (interpolated < 0.0) interpolated = 0.0;
  if (interpolated > 1.0) interpolated = 1.0;
  return interpolated * (frequency / scaling.factor) + (1.0 - interpolated) * frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(const ReferenceConfig& config, size_t context, size_t layer) {
  const ReferenceAttention attention = config.AttentionOf(layer);
  const ReferenceRopeScaling& scaling = attention.rope_scaling;
  const size_t channels = config.turned_channels(layer);
  std::vector<double> frequencies(channels / 2);
  const double theta = scaling.type == ReferenceRopeScaling::Type::kDynamic
                           ? DynamicTheta(config, attention, context)
                           : attention.rope_theta;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    // Su et al. 2021: theta^(-2i / channels).
    double frequency =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
    switch (scaling.type) {
      case ReferenceRopeScaling::Type::kNone:
      case ReferenceRopeScaling::Type::kDynamic:
        break;
      case ReferenceRopeScaling::Type::kLinear:  // Chen et al. 2023: position / factor.
        frequency /= scaling.factor;
        break;
      case ReferenceRopeScaling::Type::kLlama3:
        frequency = ScaleLlama3(frequency, scaling);
        break;
      case ReferenceRopeScaling::Type::kYarn:
        frequency = ScaleYarn(frequency, i, channels, attention);
        break;
      case ReferenceRopeScaling::Type::kLongrope:  // Ding et al. 2024.
        frequency /= (context > scaling.original_max_position_embeddings ? scaling.long_factor
                                                                         : scaling.short_factor)
                         .at(i);
        break;
      case ReferenceRopeScaling::Type::kProportional:  // Gemma 4: the other pairs stay as they are.
        frequency = static_cast<double>(i) < std::floor(scaling.partial_rotary_factor *
                                                        static_cast<double>(channels) / 2.0)
                        ? frequency / scaling.factor
                        : 0.0;
        break;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

// Half-split order: element i of the first half and of the second half of a head, or of the part of
// it that is turned, are a pair; in GLM and ERNIE, neighbours are. The attention factor of YaRN and
// LongRoPE multiplies what is turned.
void RotateHeads(const ReferenceConfig& config, const ReferenceAttention& attention,
                 std::span<const double> frequencies, size_t position, std::vector<double>& heads) {
  if (attention.no_rope) return;
  const double scale = attention.rope_scaling.attention_factor;
  for (size_t start = 0; start < heads.size(); start += attention.head_dim) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      const size_t low = start + (config.turns_neighbours ? 2 * i : i);
      const size_t high = config.turns_neighbours ? low + 1 : low + frequencies.size();
      const double first = heads[low];
      const double second = heads[high];
      const double cosine = std::cos(angle) * scale;
      const double sine = std::sin(angle) * scale;
      heads[low] = first * cosine - second * sine;
      heads[high] = second * cosine + first * sine;
    }
  }
}

}  // namespace cria::reference
