#include "ops/evex_dot_products.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/evex_dot_products.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/qb4w_avx2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

struct EvexDotProducts {
  static HWY_INLINE void Add(__m256i weights, __m256i row, __m256i& sum) {
    asm("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(row));
  }
};

const TileKernel* Qb4wEvex() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl")
             ? &Qb4wTile<DotProducts<EvexDotProducts>>::kKernel
             : nullptr;
}

#else

const TileKernel* Qb4wEvex() { return nullptr; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Qb4wEvex);

const TileKernel* Qb4wKernelWithEvexDotProducts() { return HWY_DYNAMIC_DISPATCH(Qb4wEvex)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
