#pragma once

#include <cstddef>

namespace cria::ops {

// values[i] = cap * tanh(values[i] / cap) (Gemma 2), for a positive cap. What one value becomes
// does not depend on its place.
void SoftCap(float cap, size_t size, float* values);

}  // namespace cria::ops
