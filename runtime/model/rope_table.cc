#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cria {
namespace {

double ScaleLlama3(double inverse_frequency, const RopeScaling& scaling) {
  const double wavelength = 2.0 * std::numbers::pi / inverse_frequency;
  const double trained_context = scaling.original_max_position_embeddings;
  const double periods = trained_context / wavelength;
  if (periods < scaling.low_freq_factor) return inverse_frequency / scaling.factor;
  if (periods > scaling.high_freq_factor) return inverse_frequency;
  const double smooth = (periods - scaling.low_freq_factor) /
                        (double{scaling.high_freq_factor} - scaling.low_freq_factor);
  return (1.0 - smooth) * inverse_frequency / scaling.factor + smooth * inverse_frequency;
}

double DynamicBase(const ModelConfig& config, const LayerKind& kind, size_t context_tokens) {
  const double base = kind.rope_theta;
  const double factor = kind.rope_scaling.factor;
  const double stretch = static_cast<double>(context_tokens) / config.max_position_embeddings;
  if (stretch <= 1.0) return base;
  const double channels = config.rotary_channels(kind);
  const double exponent = channels / (channels - 2.0);
  return base * std::pow(factor * stretch - (factor - 1.0), exponent);
}

// The index of the pair, as a real number, that rotates `rotations` times in the trained context.
double YarnPair(uint32_t channels, const LayerKind& kind, double rotations) {
  const double trained_context = kind.rope_scaling.original_max_position_embeddings;
  return channels * std::log(trained_context / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(double{kind.rope_theta}));
}

// The part of each frequency that is divided: from 0 at `first` to 1 at `last`.
struct YarnRamp {
  YarnRamp(uint32_t channels, const LayerKind& kind)
      : first(YarnPair(channels, kind, kind.rope_scaling.beta_fast)),
        last(YarnPair(channels, kind, kind.rope_scaling.beta_slow)) {
    if (kind.rope_scaling.truncate) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, channels - 1.0);
    // transformers does the same with a ramp of zero width.
    if (first == last) last += 0.001;
  }

  double At(size_t pair) const {
    return std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  }

  double first;
  double last;
};

}  // namespace

std::vector<double> RopeInverseFrequencies(const ModelConfig& config, const LayerKind& kind,
                                           size_t context_tokens) {
  const RopeScaling& scaling = kind.rope_scaling;
  const bool is_dynamic = scaling.type == RopeScaling::Type::kDynamic;
  const double base = is_dynamic ? DynamicBase(config, kind, context_tokens) : kind.rope_theta;
  const uint32_t channels = config.rotary_channels(kind);
  std::vector<double> frequencies(channels / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / channels;
    frequencies[i] = std::pow(base, -exponent);
  }
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kDynamic:
      break;
    case RopeScaling::Type::kLinear:
      for (double& frequency : frequencies) frequency /= scaling.factor;
      break;
    case RopeScaling::Type::kLlama3:
      for (double& frequency : frequencies) frequency = ScaleLlama3(frequency, scaling);
      break;
    case RopeScaling::Type::kYarn: {
      const YarnRamp ramp(channels, kind);
      for (size_t i = 0; i < frequencies.size(); ++i) {
        const double divided = ramp.At(i);
        frequencies[i] *= divided / scaling.factor + (1.0 - divided);
      }
      break;
    }
    case RopeScaling::Type::kProportional: {
      const double turned = std::floor(double{scaling.partial_rotary_factor} * channels / 2.0);
      for (size_t i = 0; i < frequencies.size(); ++i) {
        if (static_cast<double>(i) < turned) {
          frequencies[i] /= scaling.factor;
        } else {
          frequencies[i] = 0.0;
        }
      }
      break;
    }
    case RopeScaling::Type::kLongrope: {
      const bool is_long = context_tokens > scaling.original_max_position_embeddings;
      const std::vector<float>& factors = is_long ? scaling.long_factor : scaling.short_factor;
      for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
      break;
    }
  }
  return frequencies;
}

void FillRopeTurn(std::span<const double> inverse_frequencies, double positions, float* cosines,
                  float* sines) {
  for (size_t i = 0; i < inverse_frequencies.size(); ++i) {
    const double angle = positions * inverse_frequencies[i];
    cosines[i] = static_cast<float>(std::cos(angle));
    sines[i] = static_cast<float>(std::sin(angle));
  }
}

void FillRopeTable(std::span<const double> inverse_frequencies, size_t positions, float* cosines,
                   float* sines) {
  for (size_t position = 0; position < positions; ++position) {
    const size_t row = position * inverse_frequencies.size();
    FillRopeTurn(inverse_frequencies, static_cast<double>(position), cosines + row, sines + row);
  }
}

std::vector<LayerKind> KindsWithRopeTables(const ModelConfig& config) {
  std::vector<LayerKind> tables;
  for (const LayerKind& kind : config.layer_kinds) {
    if (!kind.no_rope && RopeTableOf(tables, kind) == tables.size()) tables.push_back(kind);
  }
  return tables;
}

size_t RopeTableOf(std::span<const LayerKind> tables, const LayerKind& kind) {
  const auto found = std::ranges::find_if(tables, [&](const LayerKind& table) {
    return table.rope_theta == kind.rope_theta && table.rope_scaling == kind.rope_scaling &&
           table.global_head_dim == kind.global_head_dim;
  });
  return static_cast<size_t>(found - tables.begin());
}

}  // namespace cria
