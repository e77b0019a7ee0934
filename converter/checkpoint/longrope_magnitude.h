#pragma once

#include <cmath>

namespace cria {

// The factor of queries and of keys that goes with longrope's frequencies, for a context that is
// `factor` times the original one (Ding et al. 2024).
inline float LongropeMagnitude(double factor, double original_positions) {
  return factor <= 1.0
             ? 1.0f
             : static_cast<float>(std::sqrt(1.0 + std::log(factor) / std::log(original_positions)));
}

}  // namespace cria
