#include "llm/rope_table.h"

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

}  // namespace

std::vector<double> RopeInverseFrequencies(const ModelConfig& config) {
  std::vector<double> frequencies(config.head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / config.head_dim;
    frequencies[i] = std::pow(double{config.rope_theta}, -exponent);
    switch (config.rope_scaling.type) {
      case RopeScaling::Type::kNone:
        break;
      case RopeScaling::Type::kLinear:
        frequencies[i] /= config.rope_scaling.factor;
        break;
      case RopeScaling::Type::kLlama3:
        frequencies[i] = ScaleLlama3(frequencies[i], config.rope_scaling);
        break;
    }
  }
  return frequencies;
}

void FillRopeTable(const ModelConfig& config, size_t positions, float* cosines, float* sines) {
  const std::vector<double> frequencies = RopeInverseFrequencies(config);
  for (size_t position = 0; position < positions; ++position) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cosines[position * frequencies.size() + i] = static_cast<float>(std::cos(angle));
      sines[position * frequencies.size() + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace cria
