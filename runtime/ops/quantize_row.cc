#include "ops/quantize_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize_row.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The range of some values and 0; `poison` is 0, or NaN where one of them is not finite.
struct Range {
  float lowest;
  float highest;
  float poison;
};

Range RangeOf(const float* row, size_t size) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto zero = hn::Zero(d);
  // Two of each, so that comparisons need not wait for each other.
  auto lowest0 = zero, lowest1 = zero, highest0 = zero, highest1 = zero;
  auto poison0 = zero, poison1 = zero;
  size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto v0 = hn::LoadU(d, row + i);
    const auto v1 = hn::LoadU(d, row + i + lanes);
    lowest0 = hn::Min(lowest0, v0);
    lowest1 = hn::Min(lowest1, v1);
    highest0 = hn::Max(highest0, v0);
    highest1 = hn::Max(highest1, v1);
    poison0 = hn::MulAdd(v0, zero, poison0);
    poison1 = hn::MulAdd(v1, zero, poison1);
  }
  for (; i < size; i += lanes) {
    const auto v = hn::LoadN(d, row + i, size - i);
    lowest0 = hn::Min(lowest0, v);
    highest0 = hn::Max(highest0, v);
    poison0 = hn::MulAdd(v, zero, poison0);
  }
  return {hn::ReduceMin(d, hn::Min(lowest0, lowest1)),
          hn::ReduceMax(d, hn::Max(highest0, highest1)),
          hn::ReduceSum(d, hn::Add(poison0, poison1))};
}

// Rounds `row` * steps_per_unit to the nearest step, counted from `zero_point`.
void Round(const float* row, size_t size, float steps_per_unit, int32_t zero_point,
           int8_t* output) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Rebind<int8_t, decltype(d)> di8;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, steps_per_unit);
  const auto zero = hn::Set(di32, zero_point);
  // Narrowing saturates.
  const auto round = [=](auto values) HWY_ATTR {
    return hn::DemoteTo(di8, hn::Add(hn::NearestInt(hn::Mul(values, factor)), zero));
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(round(hn::LoadU(d, row + i)), di8, output + i);
  }
  if (i < size) {
    hn::StoreN(round(hn::LoadN(d, row + i, size - i)), di8, output + i, size - i);
  }
}

RowQuantization QuantizeRow(const float* row, size_t size, int8_t* output) {
  constexpr float kLowest = -128.0f, kHighest = 127.0f;
  // Of numbers that are smaller, the steps would be none.
  constexpr float kLeastWidth = 1e-35f;
  const Range range = RangeOf(row, size);
  const float width = range.highest - range.lowest;
  if (!std::isfinite(width + range.poison)) {
    std::fill_n(output, size, int8_t{0});
    return {.zero_point = 0, .scale = std::numeric_limits<float>::quiet_NaN()};
  }
  if (width < kLeastWidth) {
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
