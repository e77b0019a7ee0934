#include "ops/swiglu.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void SwiGlu(const float* gate, const float* up, size_t size, float* output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // If exp overflows, x / infinity is 0, which is the limit of silu.
  const auto swiglu = [d](auto x, auto y) HWY_ATTR {
    const auto denominator = hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(x)));
    return hn::Mul(hn::Div(x, denominator), y);
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(swiglu(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, output + i);
  }
  if (i < size) {
    const auto result = swiglu(hn::LoadN(d, gate + i, size - i), hn::LoadN(d, up + i, size - i));
    hn::StoreN(result, d, output + i, size - i);
  }
}

void ClampedSwiGlu(const float* gate, const float* up, const SwiGluClamp& clamp, size_t size,
                   float* output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, clamp.limit);
  const auto alpha = hn::Set(d, -clamp.alpha);
  const auto one = hn::Set(d, 1.0f);
  const auto swiglu = [=](auto x, auto y) HWY_ATTR {
    const auto g = hn::Min(x, limit);
    const auto u = hn::Min(hn::Max(y, hn::Neg(limit)), limit);
    const auto denominator = hn::Add(one, Exp(d, hn::Mul(alpha, g)));
    return hn::Mul(hn::Div(g, denominator), hn::Add(u, one));
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(swiglu(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, output + i);
  }
  if (i < size) {
    const auto result = swiglu(hn::LoadN(d, gate + i, size - i), hn::LoadN(d, up + i, size - i));
    hn::StoreN(result, d, output + i, size - i);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(SwiGlu);
HWY_EXPORT(ClampedSwiGlu);

void ClampedSwiGlu(const float* gate, const float* up, const SwiGluClamp& clamp, size_t size,
                   float* output) {
  HWY_DYNAMIC_DISPATCH(ClampedSwiGlu)(gate, up, clamp, size, output);
}

void SwiGlu(const float* gate, const float* up, size_t size, float* output) {
  HWY_DYNAMIC_DISPATCH(SwiGlu)(gate, up, size, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
