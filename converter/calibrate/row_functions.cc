// Compiled for instructions that not every processor has, as linear_algebra.cc is: nothing here may
// instantiate what another source instantiates, too.

#include "converter/calibrate/row_functions.h"

#include <cstddef>

#include "converter/calibrate/exponential.h"

namespace cria {
namespace {

constexpr size_t kLanes = 8;

template <typename Float>
Float SumLanes(const Float (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

float LargestOf(const float* values, size_t size) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = values[0];
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < size; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

}  // namespace

double SumOfSquares(std::span<const float> values) {
  const float* const row = values.data();
  const size_t size = values.size();
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += double{row[i + lane]} * row[i + lane];
    }
  }
  double sum = SumLanes(lanes);
  for (; i < size; ++i) sum += double{row[i]} * row[i];
  return sum;
}

void SoftMaxRow(float factor, std::span<float> scores) {
  float* const row = scores.data();
  const size_t size = scores.size();
  const float largest = LargestOf(row, size);
  for (size_t i = 0; i < size; ++i) row[i] = Exponential((row[i] - largest) * factor);
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += row[i + lane];
  }
  double sum = SumLanes(lanes);
  for (; i < size; ++i) sum += row[i];
  const auto inverse = static_cast<float>(1.0 / sum);
  for (size_t j = 0; j < size; ++j) row[j] *= inverse;
}

void SiluRow(std::span<const float> gate, std::span<const float> up, std::span<float> output) {
  const float* const gates = gate.data();
  const float* const ups = up.data();
  float* const products = output.data();
  const size_t size = output.size();
  // Compilers vectorize these loops, but not one that does it all. e^-gate of more than 88 is out
  // of range; the quotient is as good as 0 before.
  for (size_t i = 0; i < size; ++i) products[i] = -gates[i] < 88.0f ? -gates[i] : 88.0f;
  for (size_t i = 0; i < size; ++i) products[i] = Exponential(products[i]);
  for (size_t i = 0; i < size; ++i) products[i] = ups[i] * gates[i] / (1.0f + products[i]);
}

}  // namespace cria
