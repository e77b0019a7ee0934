#pragma once

#include <cstddef>

namespace cria::ops {

// output[i] = gelu(gate[i]) * up[i] (Shazeer 2020) with gelu(x) = x * Phi(x), where Phi is the
// normal distribution's function (Hendrycks and Gimpel 2016). `output` may be `gate`.
void GeGlu(const float* gate, const float* up, size_t size, float* output);

// GeGLU with the approximation of the same paper,
// gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
void GeGluTanh(const float* gate, const float* up, size_t size, float* output);

}  // namespace cria::ops
