// Vector helpers shared by the operators, compiled once per instruction set.

#if defined(CRIA_OPS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_VECTOR_MATH_INL_H_
#undef CRIA_OPS_VECTOR_MATH_INL_H_
#else
#define CRIA_OPS_VECTOR_MATH_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Targets with 32 vector registers can hold larger register tiles.
inline constexpr bool kHas32Registers =
    HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3);

// If this is added to a float below 2^22 in magnitude, the sum's lowest bits are that float rounded
// to the nearest integer, ties to even: (sum's bits) - kRounderBits, or sum - kRounder.
inline constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
inline constexpr int32_t kRounderBits = 0x4b400000;

// ExpOfNonPositive(x) is exp(x) within 2 units in the last place for x <= 0. 0 below ln(2^-126),
// where the result would not be normal; NaN for NaN; exactly 1 for 0.
//
// exp(x) = 2^n * exp(r) with n = round(x / ln 2); ln 2 is split in two so that n * high is exact.
// The polynomial is the minimax approximation of (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2,
// relative to exp(r), found by Remez exchange: its error is 4.4e-9.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V ExpOfNonPositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest_argument = hn::Set(d, -87.336544f);

  const V rounder = hn::Set(d, kRounder);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
  const V n = hn::Sub(rounded, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -0.000212194442f), r);

  V p = hn::Set(d, 0.00138144672f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836878084f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416683927f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665196f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  p = hn::Add(p, hn::Set(d, 1.0f));

  // The shift removes the bits of the rounder.
  const auto exponent = hn::Add(hn::BitCast(di, rounded), hn::Set(di, 127));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, lowest_argument), hn::Mul(p, power));
}

// e^x for every x: infinity from 88.37 (just below ln(2^128)).
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Exp(D d, V x) {
  const V highest_argument = hn::Set(d, 88.37f);
  return hn::IfThenElse(hn::Gt(x, highest_argument), hn::Inf(d), ExpOfNonPositive(d, x));
}

// tanh(x) within 3 units in the last place; NaN for NaN. The polynomial is the minimax
// approximation of (tanh(x) - x) / x^3 in x^2 for |x| <= 0.55, relative to tanh(x), found by
// reweighted least squares: its error is 3.7e-8. Beyond that, tanh(|x|) = 1 - 2 / (1 + exp(2 |x|)).
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V square = hn::Mul(x, x);
  V p = hn::Set(d, 0.0164375816f);
  p = hn::MulAdd(p, square, hn::Set(d, -0.0526718138f));
  p = hn::MulAdd(p, square, hn::Set(d, 0.133207251f));
  p = hn::MulAdd(p, square, hn::Set(d, -0.333329466f));
  const V small = hn::MulAdd(hn::Mul(p, square), x, x);
  const V magnitude = hn::Abs(x);
  const V power = Exp(d, hn::Add(magnitude, magnitude));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(one, power)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.55f)), small, hn::CopySign(large, x));
}

// cap * tanh(x / cap); the inverse of cap is given, too.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V SoftCapped(D d, V x, V cap, V inverse) {
  return hn::Mul(cap, Tanh(d, hn::Mul(x, inverse)));
}

// v[b] is the b-th of as many vectors as a vector has blocks of 128 bits; afterwards, it is the
// b-th blocks of all of them, in order. For floats.
template <class D, class V>
HWY_INLINE void TransposeBlocks(D d, V* v) {
  if constexpr (hn::MaxLanes(d) == 8) {
    const V lower = hn::ConcatLowerLower(d, v[1], v[0]);
    v[1] = hn::ConcatUpperUpper(d, v[1], v[0]);
    v[0] = lower;
  } else {
#if HWY_TARGET == HWY_AVX3_DL
    constexpr int kEven = 0x88;  // Blocks 0 and 2 of both.
    constexpr int kOdd = 0xdd;   // Blocks 1 and 3.
    const __m512 even01 = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, kEven);
    const __m512 even23 = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, kEven);
    const __m512 odd01 = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, kOdd);
    const __m512 odd23 = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, kOdd);
    v[0] = V{_mm512_shuffle_f32x4(even01, even23, kEven)};
    v[1] = V{_mm512_shuffle_f32x4(odd01, odd23, kEven)};
    v[2] = V{_mm512_shuffle_f32x4(even01, even23, kOdd)};
    v[3] = V{_mm512_shuffle_f32x4(odd01, odd23, kOdd)};
#else
    static_assert(hn::MaxLanes(d) == 4, "there is one block in a vector, or there are 2 or 4");
#endif
  }
}

// The sum over the 128-bit blocks of a vector: four lanes.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE auto SumOfBlocks(D d, V v) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// In each 128-bit block: {sum of a's lanes, sum of b's, of c's, of d's}, for 32-bit lanes. A sum of
// lanes 0 to 3 is (0 + 2) + (1 + 3).
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V SumsWithinBlocks(D tag, V a, V b, V c, V d) {
  const hn::RepartitionToWide<hn::RebindToUnsigned<D>> wide;  // ARMv7 has no vectors of doubles.
  const V ab = hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b));
  const V cd = hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d));
  const auto ab_wide = hn::BitCast(wide, ab);
  const auto cd_wide = hn::BitCast(wide, cd);
  const V lower = hn::BitCast(tag, hn::InterleaveLower(wide, ab_wide, cd_wide));
  const V upper = hn::BitCast(tag, hn::InterleaveUpper(wide, ab_wide, cd_wide));
  return hn::Add(lower, upper);
}

// The sum of all lanes: the upper half is added to the lower one until one lane is left.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE float SumByHalves(D d, V v) {
  if constexpr (hn::MaxLanes(d) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return SumByHalves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Rounds `size` floats to int8 with a scale of absmax / 127, and returns the scale. If the row is
// so small that its scale would not be a normal number, the row becomes zeros and the scale 0.
HWY_INLINE float QuantizeSymmetric(const float* HWY_RESTRICT input, size_t size,
                                   int8_t* HWY_RESTRICT output) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<int8_t, decltype(df)> di8;
  const size_t lanes = hn::Lanes(df);

  auto largest = hn::Zero(df);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    largest = hn::Max(largest, hn::Abs(hn::LoadU(df, input + i)));
  }
  if (i < size) largest = hn::Max(largest, hn::Abs(hn::LoadN(df, input + i, size - i)));

  const float absmax = hn::ReduceMax(df, largest);
  const float scale = absmax / 127.0f;
  const bool is_zero = scale < 1.17549435e-38f;
  const auto inverse = hn::Set(df, is_zero ? 0.0f : 127.0f / absmax);
  const hn::RebindToSigned<decltype(df)> di32;
  const auto quantize = [&](auto v) HWY_ATTR {
    const auto rounded = hn::MulAdd(v, inverse, hn::Set(df, kRounder));
    return hn::DemoteTo(di8, hn::Sub(hn::BitCast(di32, rounded), hn::Set(di32, kRounderBits)));
  };
  for (i = 0; i + lanes <= size; i += lanes) {
    hn::StoreU(quantize(hn::LoadU(df, input + i)), di8, output + i);
  }
  if (i < size) {
    hn::StoreN(quantize(hn::LoadN(df, input + i, size - i)), di8, output + i, size - i);
  }
  return is_zero ? 0.0f : scale;
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_VECTOR_MATH_INL_H_
