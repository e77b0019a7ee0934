#pragma once

// The operators as simple loops in double precision, with which the real ones are compared.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "ops/short_convolution.h"
#include "ops/xielu.h"

namespace cria::ops::reference {

inline std::vector<double> RmsNorm(const std::vector<float>& input,
                                   const std::vector<float>& weight, double epsilon) {
  double sum_of_squares = 0;
  for (const double x : input) sum_of_squares += x * x;
  const double rms = std::sqrt(sum_of_squares / static_cast<double>(input.size()) + epsilon);
  std::vector<double> output(input.size());
  for (size_t i = 0; i < input.size(); ++i) output[i] = weight[i] * (input[i] / rms);
  return output;
}

// Element j of the normalized Hadamard matrix's row i is 1 or -1, by the parity of the bits that i
// and j share, divided by the root of its size: the largest power of two that divides the row's.
inline std::vector<double> HadamardTransform(const std::vector<float>& row) {
  size_t part = 1;
  while (row.size() % (2 * part) == 0) part *= 2;
  std::vector<double> result(row.size(), 0.0);
  for (size_t i = 0; i < row.size(); ++i) {
    for (size_t j = i / part * part; j < i / part * part + part; ++j) {
      result[i] += std::popcount(i % part & j % part) % 2 == 0 ? row[j] : -row[j];
    }
    result[i] /= std::sqrt(static_cast<double>(part));
  }
  return result;
}

// [num_rows][channels], of rows [num_rows][3 * channels] behind the gated inputs [num_taps - 1]
// [channels] of earlier ones.
inline std::vector<double> ShortConvolution(const ShortConvolutionTaps& taps,
                                            const std::vector<float>& rows, size_t num_rows,
                                            const std::vector<float>& earlier) {
  const size_t channels = taps.channels;
  std::vector<double> gated(earlier.begin(), earlier.end());
  std::vector<double> output;
  for (size_t row = 0; row < num_rows; ++row) {
    const float* const projected = &rows[row * 3 * channels];
    for (size_t i = 0; i < channels; ++i) {
      gated.push_back(double{projected[i]} * projected[2 * channels + i]);
    }
    for (size_t i = 0; i < channels; ++i) {
      double sum = taps.bias == nullptr ? 0.0 : taps.bias[i];
      for (size_t tap = 0; tap < taps.num_taps; ++tap) {
        sum += taps.weights[tap * channels + i] * gated[(row + tap) * channels + i];
      }
      output.push_back(projected[channels + i] * sum);
    }
  }
  return output;
}

// [num_rows][channels], of inputs [num_rows][channels] behind those [num_taps - 1][channels] of
// earlier ones.
inline std::vector<double> Convolution(const ShortConvolutionTaps& taps,
                                       const std::vector<float>& inputs, size_t num_rows,
                                       const std::vector<float>& earlier) {
  std::vector<float> all = earlier;
  all.insert(all.end(), inputs.begin(), inputs.end());
  std::vector<double> output;
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t i = 0; i < taps.channels; ++i) {
      double sum = taps.bias == nullptr ? 0.0 : taps.bias[i];
      for (size_t tap = 0; tap < taps.num_taps; ++tap) {
        const size_t place = (row + tap) * taps.channels + i;
        sum += double{taps.weights[tap * taps.channels + i]} * all[place];
      }
      output.push_back(sum);
    }
  }
  return output;
}

inline double Silu(double x) { return x / (1 + std::exp(-x)); }

inline double Gelu(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }

// (1 + tanh(u)) / 2, written so that nothing cancels out.
inline double GeluTanh(double x) {
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}

inline double SquaredRelu(double x) { return x > 0 ? x * x : 0; }

inline double Xielu(double x, const XieluNumbers& numbers) {
  if (x > 0) return numbers.positive * x * x + numbers.linear * x;
  return numbers.negative * (std::expm1(std::min(x, double{numbers.limit})) - x) +
         numbers.linear * x;
}

// cap * tanh(x / cap); 0 is no cap.
inline double SoftCapped(double x, double cap) { return cap == 0 ? x : cap * std::tanh(x / cap); }

// The nearest value of IEEE 754 binary16, ties to even; larger magnitudes become the largest one.
inline double RoundToF16(double x) {
  if (x == 0) return x;
  const int exponent = std::max(std::isinf(x) ? 16 : std::ilogb(x), -14);
  const double step = std::ldexp(1.0, exponent - 10);
  return std::clamp(std::nearbyint(x / step) * step, -65504.0, 65504.0);
}

// One head's keys and values, [tokens][head_dim].
struct Head {
  std::vector<std::vector<double>> keys;
  std::vector<std::vector<double>> values;
};

// softmax(cap of factor * query . keys / sqrt(head_dim)) . values over the positions [begin, end).
inline std::vector<double> Attend(const std::vector<double>& query, const Head& head, size_t begin,
                                  size_t end, double factor = 1.0, double cap = 0.0,
                                  double sink = -INFINITY) {
  const size_t head_dim = query.size();
  std::vector<double> scores;
  for (size_t t = begin; t < end; ++t) {
    double dot = 0;
    for (size_t j = 0; j < head_dim; ++j) dot += query[j] * head.keys[t][j];
    scores.push_back(SoftCapped(factor * dot / std::sqrt(static_cast<double>(head_dim)), cap));
  }
  const double largest = std::max(sink, *std::max_element(scores.begin(), scores.end()));
  double sum = std::exp(sink - largest);
  std::vector<double> output(head.values[begin].size(), 0.0);
  for (size_t t = begin; t < end; ++t) {
    const double weight = std::exp(scores[t - begin] - largest);
    sum += weight;
    for (size_t j = 0; j < output.size(); ++j) output[j] += weight * head.values[t][j];
  }
  for (double& x : output) x /= sum;
  return output;
}

}  // namespace cria::ops::reference
