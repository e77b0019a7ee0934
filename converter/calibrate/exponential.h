#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "converter/quantize/scale_search.h"

namespace cria {

// e^x with a relative error below 2e-7, for x of at most 88; below -87, about 1e-38. The C
// library's last bits depend on the processor. 2^k * e^r, with |r| <= ln(2) / 2 and the first terms
// of the series. It is always inlined, because sources that are compiled for different instructions
// use it.
[[gnu::always_inline]] inline float Exponential(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // So few bits that its products are exact.
  constexpr float kLn2Low = -2.12194440e-4f;
  x = x < -87.0f ? -87.0f : x;
  const float k = RoundToInteger(x * kLog2E);
  const float r = (x - k * kLn2High) - k * kLn2Low;
  float sum = 1.0f / 5040.0f;
  sum = sum * r + 1.0f / 720.0f;
  sum = sum * r + 1.0f / 120.0f;
  sum = sum * r + 1.0f / 24.0f;
  sum = sum * r + 1.0f / 6.0f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return sum * std::bit_cast<float>((static_cast<int32_t>(k) + 127) << 23);
}

// With a relative error below 1e-6: the series near 0, where the quotient of exponentials has few
// correct digits.
inline float HyperbolicTangent(float x) {
  const float size = x < 0.0f ? -x : x;
  if (size < 0.25f) {
    const float square = x * x;
    return x * (1.0f + square * (-1.0f / 3.0f + square * (2.0f / 15.0f - square * 17.0f / 315.0f)));
  }
  const float power = Exponential(-2.0f * size);
  const float tangent = (1.0f - power) / (1.0f + power);
  return x < 0.0f ? -tangent : tangent;
}

// The part of a normal distribution below x, with an error below 3e-7: formula 7.1.26 of Abramowitz
// and Stegun, "Handbook of Mathematical Functions".
inline float NormalDistribution(float x) {
  const float size = (x < 0.0f ? -x : x) * 0.707106781f;
  const float t = 1.0f / (1.0f + 0.3275911f * size);
  float sum = 1.061405429f;
  sum = sum * t - 1.453152027f;
  sum = sum * t + 1.421413741f;
  sum = sum * t - 0.284496736f;
  sum = sum * t + 0.254829592f;
  const float tail = 0.5f * sum * t * Exponential(-size * size);
  return x < 0.0f ? tail : 1.0f - tail;
}

// Exponential takes at most 88; for a smaller x, the result is as good as 0 anyway.
inline float Sigmoid(float x) { return 1.0f / (1.0f + Exponential(std::min(-x, 88.0f))); }

// ln(x) for x of at least 1, from the series of atanh. The C library's last bits depend on the
// processor.
inline double Logarithm(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  const double ratio = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = ratio * ratio;
  double term = ratio;
  double sum = 0.0;
  for (int i = 1; i < 40; i += 2) {
    sum += term / i;
    term *= square;
  }
  return 2.0 * sum + exponent * 0.69314718055994531;
}

// log(1 + e^x).
inline float Softplus(float x) {
  return x > 20.0f ? x : static_cast<float>(Logarithm(1.0 + double{Exponential(x)}));
}

}  // namespace cria
