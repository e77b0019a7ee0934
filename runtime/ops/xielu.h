#pragma once

#include <cstddef>

namespace cria::ops {

// The numbers of xIELU (Huang and Schlag 2024): the paper's alphas as they are used, not as they
// are trained.
struct XieluNumbers {
  float positive;
  float negative;
  float linear;
  float limit;  // The largest argument of the exponential: slightly below 0.
};

// output[i] = positive * x^2 + linear * x for x = input[i] above 0, otherwise
// negative * (exp(min(x, limit)) - 1 - x) + linear * x, whose error is some units in the last place
// of negative * max(1, |x|). `output` may be `input`.
void Xielu(const float* input, const XieluNumbers& numbers, size_t size, float* output);

}  // namespace cria::ops
