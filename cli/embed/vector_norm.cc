#include "cli/embed/vector_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cria::cli {
namespace {

constexpr double kLargestInteger = 32760.0;

// The p-norm of the vector divided by its largest absolute value, so that no power overflows.
double RelativeNorm(double p, double largest, std::span<const float> vector) {
  double sum = 0.0;
  for (const float value : vector) sum += std::pow(std::abs(value) / largest, p);
  return std::pow(sum, 1.0 / p);
}

}  // namespace

void NormalizeBy(int64_t norm, std::span<float> vector) {
  if (norm < 0) return;
  double largest = 0.0;
  for (const float value : vector) largest = std::max(largest, std::abs(double{value}));
  if (largest == 0.0) return;
  const double divisor = norm == 0
                             ? largest / kLargestInteger
                             : largest * RelativeNorm(static_cast<double>(norm), largest, vector);
  for (float& value : vector) value = static_cast<float>(value / divisor);
}

double CosineSimilarity(std::span<const float> a, std::span<const float> b) {
  double product = 0.0;
  double square_a = 0.0;
  double square_b = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    square_a += double{a[i]} * a[i];
    square_b += double{b[i]} * b[i];
  }
  const double lengths = std::sqrt(square_a) * std::sqrt(square_b);
  return lengths == 0.0 ? 0.0 : product / lengths;
}

}  // namespace cria::cli
