#pragma once

#include <cstddef>

namespace cria::ops {

// output[i] = silu(gate[i]) * up[i] with silu(x) = x / (1 + exp(-x)) (Shazeer 2020). `output` may
// be `gate`.
void SwiGlu(const float* gate, const float* up, size_t size, float* output);

}  // namespace cria::ops
