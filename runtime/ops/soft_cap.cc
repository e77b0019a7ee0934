#include "ops/soft_cap.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/soft_cap.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void SoftCap(float cap, size_t size, float* values) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto caps = hn::Set(d, cap);
  const auto inverse = hn::Set(d, 1.0f / cap);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(SoftCapped(d, hn::LoadU(d, values + i), caps, inverse), d, values + i);
  }
  if (i < size) {
    const auto rest = hn::LoadN(d, values + i, size - i);
    hn::StoreN(SoftCapped(d, rest, caps, inverse), d, values + i, size - i);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(SoftCap);

void SoftCap(float cap, size_t size, float* values) {
  HWY_DYNAMIC_DISPATCH(SoftCap)(cap, size, values);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
