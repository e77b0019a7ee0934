#include "ops/rope.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Turns by the angle, or back by it.
template <bool kBack>
HWY_INLINE void Turn(float* heads, size_t num_heads, size_t head_dim, size_t rotary_dim,
                     const float* cosines, const float* sines) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t half = rotary_dim / 2;
  const auto minus = [](auto a, auto b, auto c)
                         HWY_ATTR { return kBack ? hn::MulAdd(a, b, c) : hn::NegMulAdd(a, b, c); };
  const auto plus = [](auto a, auto b, auto c)
                        HWY_ATTR { return kBack ? hn::NegMulAdd(a, b, c) : hn::MulAdd(a, b, c); };
  for (size_t head = 0; head < num_heads; ++head) {
    float* first = heads + head * head_dim;
    float* second = first + half;
    size_t i = 0;
    for (; i + lanes <= half; i += lanes) {
      const auto a = hn::LoadU(d, first + i);
      const auto b = hn::LoadU(d, second + i);
      const auto cosine = hn::LoadU(d, cosines + i);
      const auto sine = hn::LoadU(d, sines + i);
      hn::StoreU(minus(b, sine, hn::Mul(a, cosine)), d, first + i);
      hn::StoreU(plus(a, sine, hn::Mul(b, cosine)), d, second + i);
    }
    if (i < half) {
      const size_t rest = half - i;
      const auto a = hn::LoadN(d, first + i, rest);
      const auto b = hn::LoadN(d, second + i, rest);
      const auto cosine = hn::LoadN(d, cosines + i, rest);
      const auto sine = hn::LoadN(d, sines + i, rest);
      hn::StoreN(minus(b, sine, hn::Mul(a, cosine)), d, first + i, rest);
      hn::StoreN(plus(a, sine, hn::Mul(b, cosine)), d, second + i, rest);
    }
  }
}

void ApplyRope(float* heads, size_t num_heads, size_t head_dim, size_t rotary_dim,
               const float* cosines, const float* sines) {
  Turn<false>(heads, num_heads, head_dim, rotary_dim, cosines, sines);
}

void TurnBack(float* head, size_t rotary_dim, const float* cosines, const float* sines) {
  Turn<true>(head, 1, rotary_dim, rotary_dim, cosines, sines);
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(ApplyRope);
HWY_EXPORT(TurnBack);

void ApplyRope(float* heads, size_t num_heads, size_t head_dim, size_t rotary_dim,
               const float* cosines, const float* sines) {
  HWY_DYNAMIC_DISPATCH(ApplyRope)(heads, num_heads, head_dim, rotary_dim, cosines, sines);
}

void TurnBack(float* head, size_t rotary_dim, const float* cosines, const float* sines) {
  HWY_DYNAMIC_DISPATCH(TurnBack)(head, rotary_dim, cosines, sines);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
