#pragma once

#include <cstddef>

namespace cria::ops {

// output[i] = silu(gate[i]) * up[i] with silu(x) = x / (1 + exp(-x)) (Shazeer 2020). `output` may
// be `gate`.
void SwiGlu(const float* gate, const float* up, size_t size, float* output);

// The numbers of gpt-oss's form of it.
struct SwiGluClamp {
  float alpha = 1.0f;
  float limit = 0.0f;
};

// output[i] = (u + 1) * g / (1 + exp(-alpha * g)), where g is gate[i], but at most the limit, and u
// is up[i], but at most the limit and at least its negative (OpenAI 2025). `output` may be `gate`.
void ClampedSwiGlu(const float* gate, const float* up, const SwiGluClamp& clamp, size_t size,
                   float* output);

}  // namespace cria::ops
