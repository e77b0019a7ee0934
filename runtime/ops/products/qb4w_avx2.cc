// Products of int8 rows and int4 weights for x86-64 processors that have AVX2 but not AVX-512: with
// dot products of bytes (AVX-VNNI) or without. XNNPACK's kernel for these widens every number to 16
// bits before it multiplies.

#include "ops/products/tile_kernel.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/qb4w_avx2.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/qb4w_avx2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

const TileKernel* Qb4wAvx2() { return &Qb4wTile<PairProducts>::kKernel; }
const TileKernel* Qb4wAvxVnni() {
  return __builtin_cpu_supports("avxvnni") ? &Qb4wTile<DotProducts<AvxVnni>>::kKernel : nullptr;
}

#else

const TileKernel* Qb4wAvx2() { return nullptr; }
const TileKernel* Qb4wAvxVnni() { return nullptr; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Qb4wAvx2);
HWY_EXPORT(Qb4wAvxVnni);

const TileKernel* Qb4wKernelForAvx2() { return HWY_DYNAMIC_DISPATCH(Qb4wAvx2)(); }
const TileKernel* Qb4wKernelForAvxVnni() { return HWY_DYNAMIC_DISPATCH(Qb4wAvxVnni)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
