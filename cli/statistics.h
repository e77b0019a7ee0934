#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace cria::cli {

// Each of these is 0 if there are no values.

inline double Mean(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The standard deviation of a sample: the sum of squares is divided by the number of values minus
// one.
inline double StandardDeviation(std::span<const double> values) {
  if (values.size() < 2) return 0.0;
  const double mean = Mean(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// The standard error of the mean of a sample.
inline double StandardError(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return StandardDeviation(values) / std::sqrt(static_cast<double>(values.size()));
}

// The smallest value that at least `fraction`, from 0 to 1, of the values do not exceed. `sorted`
// has them in ascending order.
inline double Percentile(std::span<const double> sorted, double fraction) {
  if (sorted.empty()) return 0.0;
  const double rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

}  // namespace cria::cli
