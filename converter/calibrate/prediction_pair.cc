#include "converter/calibrate/prediction_pair.h"

#include <algorithm>
#include <cmath>

namespace cria {

double PredictionPair::Prediction::Raise(size_t first, std::span<const float> logits) {
  const auto likeliest = std::ranges::max_element(logits);
  if (!(*likeliest > largest)) return 1.0;
  const double factor = std::exp(double{largest} - *likeliest);
  largest = *likeliest;
  choice = first + static_cast<size_t>(likeliest - logits.begin());
  sum *= factor;
  return factor;
}

double PredictionPair::Prediction::LogSumOfExps() const { return std::log(sum) + largest; }

void PredictionPair::Add(size_t first, std::span<const float> exact,
                         std::span<const float> changed) {
  weighted_ *= exact_.Raise(first, exact);
  changed_.Raise(first, changed);
  for (size_t i = 0; i < exact.size(); ++i) {
    const double power = std::exp(double{exact[i]} - exact_.largest);
    exact_.sum += power;
    weighted_ += power * (double{exact[i]} - changed[i]);
    changed_.sum += std::exp(double{changed[i]} - changed_.largest);
  }
}

double PredictionPair::Divergence() const {
  return weighted_ / exact_.sum - exact_.LogSumOfExps() + changed_.LogSumOfExps();
}

}  // namespace cria
