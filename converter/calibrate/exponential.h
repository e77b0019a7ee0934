#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "converter/quantize/scale_search.h"

namespace cria {

// e^x with a relative error below 2e-7, for x of at most 88; below -87, about 1e-38. The C
// library's last bits depend on the processor. 2^k * e^r, with |r| <= ln(2) / 2 and the first terms
// of the series.
inline float Exponential(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // So few bits that its products are exact.
  constexpr float kLn2Low = -2.12194440e-4f;
  x = std::max(x, -87.0f);
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

}  // namespace cria
