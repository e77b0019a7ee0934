#pragma once

#include <cmath>

namespace cria {

// log(1 + exp(x)), which is x in a float from 20 on.
inline float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

}  // namespace cria
