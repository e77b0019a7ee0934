#include "llm/measure/log_sum_exp.h"

#include <cmath>

#include "ops/vector.h"

namespace cria {

double LogSumExp(std::span<const float> logits) {
  const float largest = logits[ops::ArgMax(logits.data(), logits.size())];
  return std::log(ops::SumOfExps(logits.data(), logits.size(), largest)) + double{largest};
}

}  // namespace cria
