#pragma once

#include <cstddef>

namespace cria::ops {

// output[i] = max(input[i], 0)^2 (So et al. 2021, "Primer"); NaN for NaN. `output` may be `input`.
void SquaredRelu(const float* input, size_t size, float* output);

}  // namespace cria::ops
