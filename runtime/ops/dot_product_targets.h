#pragma once

// The instruction sets for operators with dot products of int8: those of simd_targets.h and, on
// aarch64, the baseline with the dot products of ARMv8.2. Highway uses these only together with
// BF16, which many cores that have them lack, such as the Cortex-A76. Include this before Highway
// instead of simd_targets.h, and dot_products-inl.h after it. Use CRIA_OPS_EXPORT and
// CRIA_OPS_DISPATCH in place of Highway's HWY_EXPORT and HWY_DYNAMIC_DISPATCH.
//
// Highway's target HWY_NEON, which nothing else uses here, stands for the dot products: its own
// check, for AES, is not asked.
#include "ops/simd_target_name.h"
#include "ops/simd_targets.h"
#if defined(__aarch64__)
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_NEON_BF16 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include "hwy/detect_targets.h"

// If the compiler's options already include AES, there is a single target without dot products.
// Where there is nothing to multiply in int8, CRIA_OPS_DISPATCH chooses the baseline, so that such
// code needs no copy for the dot products.
#if defined(__aarch64__) && HWY_TARGETS == (HWY_NEON | HWY_NEON_WITHOUT_AES)
#define CRIA_OPS_IS_ARM_DOT_TARGET (HWY_TARGET == HWY_NEON)
#define CRIA_OPS_EXPORT(function) static_assert(true)
#define CRIA_OPS_DISPATCH(has_int8, function) \
  ((has_int8) && UsesArmDotProducts() ? &N_NEON::function : &N_NEON_WITHOUT_AES::function)
#else
#define CRIA_OPS_IS_ARM_DOT_TARGET 0
#define CRIA_OPS_EXPORT(function) HWY_EXPORT(function)
#define CRIA_OPS_DISPATCH(has_int8, function) HWY_DYNAMIC_DISPATCH(function)
#endif
