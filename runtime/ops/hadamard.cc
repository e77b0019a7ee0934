#include "ops/hadamard.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/hadamard.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/hadamard-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void HadamardTransform(float* values, size_t size, size_t columns) {
  const size_t part = HadamardPart(size);
  if (columns == 1) {
    HadamardSums(values, size);
  } else {
    for (size_t half = 1; half < part; half *= 2) {
      for (size_t i = 0; i < size; i += 2 * half) {
        AddAndSubtract(values + i * columns, half * columns);
      }
    }
  }
  const float factor = HadamardFactor(size);
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
