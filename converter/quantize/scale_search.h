#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cria {

// The integers a weight may become, both ends included; floats, since that is how they are
// computed.
struct CodeRange {
  float least;
  float most;
};

enum class ScaleType : uint8_t { kF32, kBf16 };

// The first scales to look at, told by the code that the largest magnitude would get: `first`, and
// on by `step`; beyond the largest code the extremes are clipped. Besides, every whole code from 1
// to `whole_codes`: weights that were quantized before are found again so, though a group of them
// may use the smallest codes only.
struct ScaleGrid {
  int whole_codes;
  float first;
  float step;
  int count;
};

// What a quantizer tells the search about its codes.
struct ScaleRule {
  CodeRange range;
  ScaleType type;
  ScaleGrid grid;
};

struct ScaleFit {
  float scale = 1.0f;          // Positive and normal.
  double squared_error = 0.0;  // Sum over the values of (value - scale * code)².
};

// The nearest integer, ties to even, for |value| below 2^22. Plain arithmetic, so that loops of it
// become vectors on every architecture and give the same bits.
inline float RoundToInteger(float value) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: its unit in the last place is 1.
  return (value + kMagic) - kMagic;
}

inline float CodeOf(float value, float inverse_scale, CodeRange range) {
  const float code = std::min(std::max(value * inverse_scale, range.least), range.most);
  return RoundToInteger(code);
}

// Values smaller than this everywhere in a group are taken for zeros: their scale could not be
// normal, which XNNPACK asks for.
inline constexpr float kMinMagnitude = 0x1p-116f;

// Looks for the scale with which rounding `values` to codes has the least squared error; every
// value weighs the same. Never worse than the largest magnitude over the largest code. A group of
// zeros has scale 1. `scratch` must hold at least ScaleSearchScratch(values.size()) floats.
ScaleFit SearchScale(std::span<const float> values, const ScaleRule& rule,
                     std::span<float> scratch);

inline constexpr size_t kScaleSearchLanes = 8;
constexpr size_t ScaleSearchScratch(size_t num_values) {
  return (num_values + kScaleSearchLanes - 1) / kScaleSearchLanes * kScaleSearchLanes;
}

}  // namespace cria
