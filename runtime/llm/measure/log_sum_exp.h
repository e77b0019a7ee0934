#pragma once

#include <span>

namespace cria {

// log(sum of exp(logit)): a logit minus this is the logarithm of a probability. `logits` must not
// be empty.
double LogSumExp(std::span<const float> logits);

}  // namespace cria
