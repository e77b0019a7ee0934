#pragma once

#include <span>

namespace cria {

// The logarithm of the sum of exp(logit): what is subtracted from a logit to make it the logarithm
// of a probability. `logits` are not empty.
double LogSumExp(std::span<const float> logits);

}  // namespace cria
