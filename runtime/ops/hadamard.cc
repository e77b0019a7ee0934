#include "ops/hadamard.h"

#include <cmath>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/hadamard.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Each pair (a, b) becomes (a + b, a - b), for pairs that are `half` elements apart.
HWY_INLINE void AddAndSubtract(float* HWY_RESTRICT first, size_t half) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  float* HWY_RESTRICT second = first + half;
  size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = hn::LoadU(d, first + i);
    const auto b = hn::LoadU(d, second + i);
    hn::StoreU(hn::Add(a, b), d, first + i);
    hn::StoreU(hn::Sub(a, b), d, second + i);
  }
  for (; i < half; ++i) {
    const float a = first[i];
    const float b = second[i];
    first[i] = a + b;
    second[i] = a - b;
  }
}

void HadamardTransform(float* values, size_t size, size_t columns) {
  const size_t part = size & (~size + 1);
  for (size_t half = 1; half < part; half *= 2) {
    for (size_t i = 0; i < size; i += 2 * half) {
      AddAndSubtract(values + i * columns, half * columns);
    }
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(part)));
  for (size_t i = 0; i < size * columns; ++i) values[i] *= factor;
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(HadamardTransform);

void HadamardTransform(float* values, size_t size, size_t columns) {
  HWY_DYNAMIC_DISPATCH(HadamardTransform)(values, size, columns);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
