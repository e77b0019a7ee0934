#pragma once

#include <cstddef>

namespace cria::ops {

// output[i] = weight[i] * input[i] / sqrt(mean(input^2) + epsilon), one row of `size` floats
// (Zhang and Sennrich 2019, as Llama applies it). `output` may be `input`; weights are 1 if
// `weight` is null.
void RmsNorm(const float* input, const float* weight, size_t size, float epsilon, float* output);

}  // namespace cria::ops
