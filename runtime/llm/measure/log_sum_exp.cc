#include "llm/measure/log_sum_exp.h"

#include <algorithm>
#include <cmath>

namespace cria {

double LogSumExp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) + largest;
}

}  // namespace cria
