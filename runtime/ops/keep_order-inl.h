// Sums in registers, compiled once per instruction set.

#if defined(CRIA_OPS_KEEP_ORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_KEEP_ORDER_INL_H_
#undef CRIA_OPS_KEEP_ORDER_INL_H_
#else
#define CRIA_OPS_KEEP_ORDER_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// Has a sum, a vector of Highway's, computed here. There are enough registers for the sums of an
// unrolled loop only in the order of additions that is written; without this, GCC chooses another.
template <class V>
HWY_INLINE void KeepOrder(V& sum) {
#if HWY_ARCH_X86
  asm("" : "+v"(sum.raw));
#elif HWY_ARCH_ARM
  asm("" : "+w"(sum.raw));
#else
  (void)sum;
#endif
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_KEEP_ORDER_INL_H_
