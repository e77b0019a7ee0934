#include "ops/rms_norm.h"

#include <cmath>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float SumOfSquares(const float* input, size_t size) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // Four sums, so that additions do not wait for each other and errors stay small.
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    const auto v0 = hn::LoadU(d, input + i);
    const auto v1 = hn::LoadU(d, input + i + lanes);
    const auto v2 = hn::LoadU(d, input + i + 2 * lanes);
    const auto v3 = hn::LoadU(d, input + i + 3 * lanes);
    sum0 = hn::MulAdd(v0, v0, sum0);
    sum1 = hn::MulAdd(v1, v1, sum1);
    sum2 = hn::MulAdd(v2, v2, sum2);
    sum3 = hn::MulAdd(v3, v3, sum3);
  }
  for (; i < size; i += lanes) {
    const auto v = hn::LoadN(d, input + i, size - i);
    sum0 = hn::MulAdd(v, v, sum0);
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

void RmsNorm(const float* input, const float* weight, size_t size, float epsilon, float* output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float mean = SumOfSquares(input, size) / static_cast<float>(size);
  const auto factor = hn::Set(d, 1.0f / std::sqrt(mean + epsilon));
  size_t i = 0;
  if (weight == nullptr) {
    for (; i < size; i += lanes) {
      hn::StoreN(hn::Mul(hn::LoadN(d, input + i, size - i), factor), d, output + i, size - i);
    }
    return;
  }
  for (; i + lanes <= size; i += lanes) {
    const auto normed = hn::Mul(hn::LoadU(d, input + i), factor);
    hn::StoreU(hn::Mul(normed, hn::LoadU(d, weight + i)), d, output + i);
  }
  if (i < size) {
    const auto normed = hn::Mul(hn::LoadN(d, input + i, size - i), factor);
    const auto weights = hn::LoadN(d, weight + i, size - i);
    hn::StoreN(hn::Mul(normed, weights), d, output + i, size - i);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(RmsNorm);

void RmsNorm(const float* input, const float* weight, size_t size, float epsilon, float* output) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(input, weight, size, epsilon, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
