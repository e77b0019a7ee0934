#include "ops/squared_relu.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/squared_relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void SquaredRelu(const float* input, size_t size, float* output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // The comparison is false for NaN, which stays.
  const auto square = [d](auto x) HWY_ATTR {
    return hn::Mul(x, hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x));
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) hn::StoreU(square(hn::LoadU(d, input + i)), d, output + i);
  if (i < size) hn::StoreN(square(hn::LoadN(d, input + i, size - i)), d, output + i, size - i);
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(SquaredRelu);

void SquaredRelu(const float* input, size_t size, float* output) {
  HWY_DYNAMIC_DISPATCH(SquaredRelu)(input, size, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
