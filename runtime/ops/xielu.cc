#include "ops/xielu.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/xielu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void Xielu(const float* input, const XieluNumbers& numbers, size_t size, float* output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto xielu = [d, &numbers](auto x) HWY_ATTR {
    const auto zero = hn::Zero(d);
    const auto linear = hn::Mul(x, hn::Set(d, numbers.linear));
    // A limit above 0 is none, because other x are not below it.
    const auto limited = hn::Min(hn::Min(x, hn::Set(d, numbers.limit)), zero);
    const auto below = hn::Sub(hn::Sub(ExpOfNonPositive(d, limited), hn::Set(d, 1.0f)), x);
    const auto square = hn::Mul(x, hn::Mul(x, hn::Set(d, numbers.positive)));
    const auto tail = hn::Mul(below, hn::Set(d, numbers.negative));
    return hn::Add(linear, hn::IfThenElse(hn::Gt(x, zero), square, tail));
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) hn::StoreU(xielu(hn::LoadU(d, input + i)), d, output + i);
  if (i < size) hn::StoreN(xielu(hn::LoadN(d, input + i, size - i)), d, output + i, size - i);
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Xielu);

void Xielu(const float* input, const XieluNumbers& numbers, size_t size, float* output) {
  HWY_DYNAMIC_DISPATCH(Xielu)(input, numbers, size, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
