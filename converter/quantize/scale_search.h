#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric.h"

namespace cria {

// The range of codes, both ends included; as floats, because the computation is in floats.
struct CodeRange {
  float min;
  float max;
};

enum class ScaleType : uint8_t { kF32, kBf16 };

// The nearest number that a scale or minimum of this type can have.
inline float AsStored(double number, ScaleType type) {
  const auto single = static_cast<float>(number);
  return type == ScaleType::kBf16 ? Bf16ToFloat(FloatToBf16(single)) : single;
}

// The scales to try first, given by the code of the largest magnitude: from `first` on in steps of
// `step`; codes beyond the largest are clipped. In addition, every whole code from 1 to
// `whole_codes`: this finds the scale of weights that were quantized before, even if a group of
// them uses only the smallest codes.
struct ScaleGrid {
  int whole_codes;
  float first;
  float step;
  int count;
};

// The properties of a quantizer's codes that the search needs.
struct ScaleRule {
  CodeRange range;
  ScaleType type;  // Also of the minimum.
  ScaleGrid grid;
  // Codes are from 0 on, and a minimum is subtracted. The grid is then given by the code of the
  // distance between the largest and the smallest value.
  bool has_minimum = false;
};

struct ScaleFit {
  float scale = 1.0f;  // Positive and normal.
  float minimum = 0.0f;
  double squared_error = 0.0;  // Sum over the values of (value - (scale * code - minimum))².
};

// A number of |value| below 2^22 is rounded to an integer if this is added and subtracted again:
// 1.5 * 2^23, whose unit in the last place is 1.
inline constexpr float kIntegerRounder = 12582912.0f;

// The nearest integer, ties to even, for |value| below 2^22. It uses only arithmetic, so that
// compilers vectorize loops of it on every architecture, with the same results.
[[gnu::always_inline]] inline float RoundToInteger(float value) {
  return (value + kIntegerRounder) - kIntegerRounder;
}

[[gnu::always_inline]] inline float CodeOf(float value, float inverse_scale, CodeRange range) {
  const float code = std::min(std::max(value * inverse_scale, range.min), range.max);
  return RoundToInteger(code);
}

// If all values of a group are smaller than this, they become zeros: their scale would not be a
// normal number, which XNNPACK requires.
inline constexpr float kMinMagnitude = 0x1p-116f;

// Searches for the scale, and the minimum if the rule has one, with the least squared error after
// rounding `values` to codes; all values have the same weight. Without a minimum, the result is
// never worse than with the scale (largest magnitude) / (largest code). A group of zeros has scale
// 1, and of equal values as well if there is a minimum. `scratch` must have at least
// ScaleSearchScratch(values.size()) floats.
ScaleFit SearchScale(std::span<const float> values, const ScaleRule& rule,
                     std::span<float> scratch);

inline constexpr size_t kScaleSearchLanes = 8;
constexpr size_t ScaleSearchScratch(size_t num_values) {
  return (num_values + kScaleSearchLanes - 1) / kScaleSearchLanes * kScaleSearchLanes;
}

}  // namespace cria
