#pragma once

// The instruction sets that every operator is compiled for; the best one of the processor is chosen
// at run time. Include this before Highway.
//
// There are few, because each is another copy of the code in the binary. x86-64 has its baseline,
// AVX2 and AVX-512 with VNNI; aarch64 has its baseline, to which dot_product_targets.h adds another
// for operators that gain by it. Vectors whose width is not known when compiling (SVE, RVV) are
// left out, because attention uses arrays of vectors, which such types cannot form.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS                                                                   \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_NEON | HWY_NEON_BF16 | \
   HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
