#include "ops/quantize_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize_row.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The range of the values, extended to include 0, and whether all of them are finite.
struct Range {
  float lowest;
  float highest;
  bool is_finite;
};

Range RangeOf(const float* row, size_t size) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const size_t lanes = hn::Lanes(d);
  // Two of each, so that comparisons do not wait for each other.
  auto lowest0 = hn::Zero(d), lowest1 = hn::Zero(d);
  auto highest0 = hn::Zero(d), highest1 = hn::Zero(d);
  // As integers, the bits of magnitudes have the same order; infinity and NaN are the largest.
  auto magnitude0 = hn::Zero(di32), magnitude1 = hn::Zero(di32);
  size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto v0 = hn::LoadU(d, row + i);
    const auto v1 = hn::LoadU(d, row + i + lanes);
    lowest0 = hn::Min(lowest0, v0);
    lowest1 = hn::Min(lowest1, v1);
    highest0 = hn::Max(highest0, v0);
    highest1 = hn::Max(highest1, v1);
    magnitude0 = hn::Max(magnitude0, hn::BitCast(di32, hn::Abs(v0)));
    magnitude1 = hn::Max(magnitude1, hn::BitCast(di32, hn::Abs(v1)));
  }
  for (; i < size; i += lanes) {
    const auto v = hn::LoadN(d, row + i, size - i);
    lowest0 = hn::Min(lowest0, v);
    highest0 = hn::Max(highest0, v);
    magnitude0 = hn::Max(magnitude0, hn::BitCast(di32, hn::Abs(v)));
  }
  constexpr int32_t kInfinityBits = 0x7f800000;
  return {hn::ReduceMin(d, hn::Min(lowest0, lowest1)),
          hn::ReduceMax(d, hn::Max(highest0, highest1)),
          hn::ReduceMax(di32, hn::Max(magnitude0, magnitude1)) < kInfinityBits};
}

// Rounds `row` * steps_per_unit to the nearest step, counted from `zero_point`. Every product must
// be at most 255.
void Round(const float* row, size_t size, float steps_per_unit, int32_t zero_point,
           int8_t* output) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Repartition<int16_t, decltype(d)> di16;
  const hn::Repartition<int8_t, decltype(d)> di8;
  const hn::Rebind<int8_t, decltype(d)> di8_quarter;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, steps_per_unit);
  const auto rounder = hn::Set(d, kRounder);
  const auto offset = hn::Set(di32, zero_point - kRounderBits);
  const auto round = [=](auto values) HWY_ATTR {
    return hn::Add(hn::BitCast(di32, hn::MulAdd(values, factor, rounder)), offset);
  };
  // Narrowing saturates.
  size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    const auto v0 = round(hn::LoadU(d, row + i));
    const auto v1 = round(hn::LoadU(d, row + i + lanes));
    const auto v2 = round(hn::LoadU(d, row + i + 2 * lanes));
    const auto v3 = round(hn::LoadU(d, row + i + 3 * lanes));
    const auto v01 = hn::OrderedDemote2To(di16, v0, v1);
    const auto v23 = hn::OrderedDemote2To(di16, v2, v3);
    hn::StoreU(hn::OrderedDemote2To(di8, v01, v23), di8, output + i);
  }
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(hn::DemoteTo(di8_quarter, round(hn::LoadU(d, row + i))), di8_quarter, output + i);
  }
  if (i < size) {
    const auto rest = round(hn::LoadN(d, row + i, size - i));
    hn::StoreN(hn::DemoteTo(di8_quarter, rest), di8_quarter, output + i, size - i);
  }
}

RowQuantization QuantizeRow(const float* row, size_t size, int8_t* output) {
  constexpr float kLowest = -128.0f, kHighest = 127.0f;
  // A smaller range would make steps_per_unit overflow.
  constexpr float kMinWidth = 1e-35f;
  const Range range = RangeOf(row, size);
  const float width = range.highest - range.lowest;
  if (!range.is_finite || !std::isfinite(width)) {
    std::fill_n(output, size, int8_t{0});
    return {.zero_point = 0, .scale = std::numeric_limits<float>::quiet_NaN()};
  }
  if (width < kMinWidth) {
    std::fill_n(output, size, int8_t{0});
    return {.zero_point = 0, .scale = 1.0f};
  }
  const float steps_per_unit = (kHighest - kLowest) / width;
  const float zero = std::nearbyint(kLowest - range.lowest * steps_per_unit);
  const auto zero_point = static_cast<int32_t>(std::clamp(zero, kLowest, kHighest));
  Round(row, size, steps_per_unit, zero_point, output);
  return {.zero_point = zero_point, .scale = width / (kHighest - kLowest)};
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(QuantizeRow);

RowQuantization QuantizeRow(const float* row, size_t size, int8_t* output) {
  return HWY_DYNAMIC_DISPATCH(QuantizeRow)(row, size, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
