// Weights of int8 values as integers, where there are instructions that multiply integers and add
// their products; compiled once per instruction set.
//
// The weights of a block's positions, times the scales of the values there, become integers, with
// one scale for a query and block: the largest of them becomes kMaxWeightCode. Dot products of
// bytes take them as two digits of base 256; those of pairs of 16-bit numbers, which x86-64 has
// otherwise, as one digit. A sum of integers times int8 values is exact in 32 bits, so it does not
// depend on the order of additions. Compared with floats, the error of a weight is at most half a
// step, which is 1 / (2 * kMaxWeightCode) of the largest weight in its block.

#if defined(CRIA_OPS_VALUE_DIGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_VALUE_DIGITS_INL_H_
#undef CRIA_OPS_VALUE_DIGITS_INL_H_
#else
#define CRIA_OPS_VALUE_DIGITS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/dot_products-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// Whether one instruction multiplies and adds two 16-bit numbers in each 32-bit lane.
inline constexpr bool kHasPairProducts = HWY_ARCH_X86 && !kHasDotProducts;
inline constexpr bool kHasIntegerWeights = kHasDotProducts || kHasPairProducts;

// Positions whose products an instruction adds.
inline constexpr size_t kGroup = kHasPairProducts ? 2 : 4;
// Digits of a weight: the higher one and the lower one, or all of it.
inline constexpr size_t kDigits = kHasPairProducts ? 1 : 2;
// Bytes of a group's digits, or of its values in one dimension.
inline constexpr size_t kWordBytes = 4;

// Vectors of digits, and of the values that they are multiplied by.
using DDigits =
    hn::Repartition<std::conditional_t<kHasPairProducts, int16_t,
                                       std::conditional_t<HWY_ARCH_X86, uint8_t, int8_t>>,
                    hn::ScalableTag<float>>;
using DValues =
    hn::Repartition<std::conditional_t<kHasPairProducts, int16_t, int8_t>, hn::ScalableTag<float>>;

// Bytes are unsigned on x86; on Arm they are signed, so that the lower one begins at -128. 16-bit
// numbers are signed.
inline constexpr bool kHasSignedDigits = !HWY_ARCH_X86;
inline constexpr int32_t kDigitOffset = kHasSignedDigits ? 128 : 0;
inline constexpr int32_t kMaxWeightCode = kHasPairProducts   ? 32767
                                          : kHasSignedDigits ? 127 * 256 + 127
                                                             : 255 * 256 + 255;
static_assert(int64_t{attention::kBlockTokens} * 127 * kMaxWeightCode < INT32_MAX);

// Weights that are all smaller become 0, because their number of steps per unit would overflow.
inline constexpr float kMinWeight = 1e-33f;

// The factor from weights to codes, of which `largest` is the largest weight.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V CodesPerUnit(D d, V largest) {
  const V codes = hn::Div(hn::Set(d, static_cast<float>(kMaxWeightCode)), largest);
  return hn::IfThenZeroElse(hn::Lt(largest, hn::Set(d, kMinWeight)), codes);
}

// The factor from a sum of codes times values to the sum of weights times values.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V CodeScale(D d, V largest) {
  return hn::Mul(largest, hn::Set(d, 1.0f / static_cast<float>(kMaxWeightCode)));
}

// Each weight's code, plus kDigitOffset.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE auto WeightCodes(D d, V weights, V codes_per_unit) {
  const hn::RebindToSigned<D> di32;
  const V rounded = hn::MulAdd(weights, codes_per_unit, hn::Set(d, kRounder));
  return hn::Sub(hn::BitCast(di32, rounded), hn::Set(di32, kRounderBits - kDigitOffset));
}

// Lanes are positions: in place of the weights of a group, each digit of all of them, in order.
// With one digit, the second place has no meaning.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V DigitsOfGroups(D d, V weights, V codes_per_unit) {
  const auto codes = WeightCodes(d, weights, codes_per_unit);
  const hn::Repartition<uint64_t, D> du64;
  if constexpr (kHasPairProducts) {
    const auto pairs = hn::BitCast(du64, codes);
    return hn::BitCast(d, hn::Or(pairs, hn::ShiftRight<16>(pairs)));
  } else {
    const hn::Repartition<uint8_t, D> du8;
    alignas(16) constexpr uint8_t kOrder[16] = {1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12};
    auto digits = hn::TableLookupBytes(hn::BitCast(du8, codes), hn::LoadDup128(du8, kOrder));
    if constexpr (kHasSignedDigits) {
      digits = hn::Xor(digits, hn::BitCast(du8, hn::Set(du64, uint64_t{0x80808080} << 32)));
    }
    return hn::BitCast(d, digits);
  }
}

// Lanes are queries: replaces the weights of a group, in the first places, by each digit of all of
// them.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE void DigitsOfLanes(D d, V (&weights)[kGroup], V codes_per_unit) {
  const hn::RebindToUnsigned<D> du32;
  hn::VFromD<decltype(du32)> codes[kGroup];
#pragma GCC unroll 4
  for (size_t i = 0; i < kGroup; ++i) {
    codes[i] = hn::BitCast(du32, WeightCodes(d, weights[i], codes_per_unit));
  }
  if constexpr (kHasPairProducts) {
    weights[0] = hn::BitCast(d, hn::Or(codes[0], hn::ShiftLeft<16>(codes[1])));
  } else {
    const auto lower_bytes = hn::Set(du32, 0x00ff00ffu);
    const auto even = hn::Or(codes[0], hn::ShiftLeft<16>(codes[2]));
    const auto odd = hn::Or(codes[1], hn::ShiftLeft<16>(codes[3]));
    const auto higher =
        hn::Or(hn::And(hn::ShiftRight<8>(even), lower_bytes), hn::AndNot(lower_bytes, odd));
    auto lower = hn::Or(hn::And(even, lower_bytes), hn::ShiftLeft<8>(hn::And(odd, lower_bytes)));
    if constexpr (kHasSignedDigits) lower = hn::Xor(lower, hn::Set(du32, 0x80808080u));
    weights[0] = hn::BitCast(d, higher);
    weights[1] = hn::BitCast(d, lower);
  }
}

// Rearranges the int8 rows of two positions, each half a vector: each 32-bit lane has one dimension
// of both, as 16-bit numbers.
template <class DRow, class VRow = hn::VFromD<DRow>>
HWY_INLINE void InterleaveRows(DRow d_row, const VRow (&rows)[2], hn::VFromD<DValues> (&parts)[2]) {
  parts[0] = hn::PromoteTo(DValues(), hn::InterleaveLower(d_row, rows[0], rows[1]));
  parts[1] = hn::PromoteTo(DValues(), hn::InterleaveUpper(d_row, rows[0], rows[1]));
}

// Rearranges the int8 rows of four positions so that each 32-bit lane has one dimension of all of
// them. With several 128-bit blocks, lane l of block b of part i has dimension 16 * b + 4 * i + l.
// If there are only two parts, the rows have 8 dimensions.
template <class DRow, size_t kParts, class VRow = hn::VFromD<DRow>>
HWY_INLINE void InterleaveRows(DRow d_row, const VRow (&rows)[4],
                               hn::VFromD<DValues> (&parts)[kParts]) {
  const DValues di8;
  const hn::Repartition<int16_t, DValues> di16;
  hn::VFromD<DValues> whole[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) whole[i] = hn::ZeroExtendResizeBitCast(di8, d_row, rows[i]);
  const auto pairs01 = hn::BitCast(di16, hn::InterleaveLower(di8, whole[0], whole[1]));
  const auto pairs23 = hn::BitCast(di16, hn::InterleaveLower(di8, whole[2], whole[3]));
  parts[0] = hn::BitCast(di8, hn::InterleaveLower(di16, pairs01, pairs23));
  parts[1] = hn::BitCast(di8, hn::InterleaveUpper(di16, pairs01, pairs23));
  if constexpr (kParts == 4) {
    const auto upper01 = hn::BitCast(di16, hn::InterleaveUpper(di8, whole[0], whole[1]));
    const auto upper23 = hn::BitCast(di16, hn::InterleaveUpper(di8, whole[2], whole[3]));
    parts[2] = hn::BitCast(di8, hn::InterleaveLower(di16, upper01, upper23));
    parts[3] = hn::BitCast(di8, hn::InterleaveUpper(di16, upper01, upper23));
  }
}

// Adds to each 32-bit lane the products of a group's digits by its values.
template <class DI32, class VDigits, class VValues, class VI32 = hn::VFromD<DI32>>
HWY_INLINE VI32 AddProducts(DI32 di32, VDigits digits, VValues values, VI32 sum) {
  if constexpr (kHasPairProducts) {
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(di32, digits, values));
    KeepOrder(sum);
    return sum;
  } else {
    return DotQuads(di32, digits, values, sum);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_VALUE_DIGITS_INL_H_
