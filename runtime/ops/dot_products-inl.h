// Dot products of int8, compiled once for each instruction set of dot_product_targets.h.

#if defined(CRIA_OPS_DOT_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_DOT_PRODUCTS_INL_H_
#undef CRIA_OPS_DOT_PRODUCTS_INL_H_
#else
#define CRIA_OPS_DOT_PRODUCTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/dot_product_targets.h"
#include "ops/keep_order-inl.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

#if CRIA_OPS_IS_ARM_DOT_TARGET
// What follows is compiled with the dot products, too.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_NEON "+dotprod"
#endif

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether one instruction multiplies and adds four bytes in each 32-bit lane.
inline constexpr bool kHasDotProducts =
    CRIA_OPS_IS_ARM_DOT_TARGET || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL);

// Whether keys and values are int8. With the dot products of Arm, they always are: the baseline is
// used for floats.
HWY_INLINE bool IsInt8(KvType type) { return CRIA_OPS_IS_ARM_DOT_TARGET || type == KvType::kInt8; }

// WithKvElement for the types that this target is used for.
template <typename Run>
HWY_INLINE void WithAttendedElement(KvType type, const Run& run) {
#if CRIA_OPS_IS_ARM_DOT_TARGET
  (void)type;
  run.template operator()<int8_t>();
#else
  WithKvElement(type, run);
#endif
}

// DotQuads adds to each 32-bit lane the products of its four pairs of bytes. Every byte is in
// [-127, 127]. The dot products of x86 multiply unsigned by signed bytes, so one side there
// (`biased`, made by Bias) has 128 added, and kDotBias times the sum of the other side must be
// subtracted at the end.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
inline constexpr int32_t kDotBias = 128;
#else
inline constexpr int32_t kDotBias = 0;
#endif

template <class DI8, class V = hn::VFromD<DI8>>
HWY_INLINE auto Bias(DI8 di8, V bytes) {
  if constexpr (kDotBias != 0) {
    return hn::BitCast(hn::RebindToUnsigned<DI8>(), hn::Xor(bytes, hn::Set(di8, int8_t{-128})));
  } else {
    return bytes;
  }
}

template <class DI32, class VBiased, class VI8, class VI32 = hn::VFromD<DI32>>
HWY_INLINE VI32 DotQuads(DI32 di32, VBiased biased, VI8 bytes, VI32 sum) {
#if CRIA_OPS_IS_ARM_DOT_TARGET
  (void)di32;
  return VI32(vdotq_s32(sum.raw, biased.raw, bytes.raw));
#elif HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64
  // Two products fit into 16 bits: 2 * 127^2 < 2^15.
  (void)di32;
  const int16x8_t lower = vmull_s8(vget_low_s8(biased.raw), vget_low_s8(bytes.raw));
  const int16x8_t upper = vmull_high_s8(biased.raw, bytes.raw);
  return VI32(vpadalq_s16(sum.raw, vpaddq_s16(lower, upper)));
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
  // Unsigned times signed, also exact in 16 bits: the sign moves from one side to the other.
  const hn::Repartition<int16_t, DI32> di16;
  const hn::Repartition<uint8_t, DI32> du8;
  const auto magnitudes = hn::BitCast(du8, hn::Abs(biased));
  const auto others = hn::IfNegativeThenNegOrUndefIfZero(biased, bytes);
  const auto pairs = hn::SatWidenMulPairwiseAdd(di16, magnitudes, others);
  sum = hn::Add(sum, hn::WidenMulPairwiseAdd(di32, pairs, hn::Set(di16, int16_t{1})));
  KeepOrder(sum);
  return sum;
#else
  return hn::SumOfMulQuadAccumulate(di32, biased, bytes, sum);
#endif
}

#if CRIA_OPS_IS_ARM_DOT_TARGET
// Takes the four bytes in lane kLane of `quads` for every lane.
template <size_t kLane, class VI8, class VI32>
HWY_INLINE VI32 DotQuadsByLane(VI8 bytes, VI8 quads, VI32 sum) {
  return VI32(vdotq_laneq_s32(sum.raw, bytes.raw, quads.raw, static_cast<int>(kLane)));
}
#endif

// {sum of a's lanes, sum of b's, of c's, of d's}.
template <class DI32, class V = hn::VFromD<DI32>>
HWY_INLINE auto SumsOfLanes(DI32 di32, V a, V b, V c, V d) {
#if HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64
  (void)di32;
  return V(vpaddq_s32(vpaddq_s32(a.raw, b.raw), vpaddq_s32(c.raw, d.raw)));
#else
  return SumOfBlocks(di32, SumsWithinBlocks(di32, a, b, c, d));
#endif
}

// Makes a compiler inline a lambda, as HWY_INLINE does with a function.
#undef CRIA_OPS_INLINE_LAMBDA
#define CRIA_OPS_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

// Calls `run.template operator()<i>()` for i from 0 to before kCount.
template <size_t kCount, typename Run>
HWY_INLINE void ForEachConstant(const Run& run) {
  [&]<size_t... kIndices>(std::index_sequence<kIndices...>) CRIA_OPS_INLINE_LAMBDA {
    (run.template operator()<kIndices>(), ...);
  }(std::make_index_sequence<kCount>());
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_DOT_PRODUCTS_INL_H_
