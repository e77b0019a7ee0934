#pragma once

#include <cmath>

namespace cria {

// The factor of queries and of keys that goes with yarn's frequencies, 0.1 ln(factor) + 1 (Peng et
// al. 2023); `weight` is DeepSeek's factor of the first term.
inline float YarnMagnitude(float factor, float weight) {
  return factor <= 1.0f ? 1.0f : 0.1f * weight * std::log(factor) + 1.0f;
}

}  // namespace cria
