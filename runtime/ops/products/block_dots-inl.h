// The codes of block formats and their dot products with int8 activations, compiled once for each
// instruction set of dot_product_targets.h.

#if defined(CRIA_OPS_BLOCK_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_BLOCK_DOTS_INL_H_
#undef CRIA_OPS_BLOCK_DOTS_INL_H_
#else
#define CRIA_OPS_BLOCK_DOTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/dot_products-inl.h"
#include "ops/keep_order-inl.h"
#include "weights/block_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector has four codes of each of kBlockLanes outputs: a part of a line of BlockTiles.
using BlockU8 = hn::CappedTag<uint8_t, BlockTiles::kLineBytes>;
using BlockI8 = hn::RebindToSigned<BlockU8>;
using BlockI16 = hn::RepartitionToWide<BlockI8>;
using BlockI32 = hn::RepartitionToWide<BlockI16>;
using BlockF32 = hn::RebindToFloat<BlockI32>;
inline constexpr size_t kBlockLanes = hn::MaxLanes(BlockI32());
inline constexpr size_t kBlockParts = BlockTiles::kOutputs / kBlockLanes;

// Shifts each byte's bits right, or left by a negative number, and clears those outside `kMask`,
// which must be all those that come from another byte.
template <int kShift, uint8_t kMask>
HWY_INLINE hn::Vec<BlockU8> MoveBits(hn::Vec<BlockU8> bytes) {
  const auto mask = hn::Set(BlockU8(), kMask);
  const auto words = hn::BitCast(hn::RebindToUnsigned<BlockI16>(), bytes);
  if constexpr (kShift == 0) {
    return hn::And(bytes, mask);
  } else if constexpr (kShift < 0) {
    return hn::And(hn::BitCast(BlockU8(), hn::ShiftLeft<-kShift>(words)), mask);
  } else if constexpr (kMask == 0xff >> kShift) {
    return hn::ShiftRight<kShift>(bytes);  // One instruction on Arm, which shifts bytes.
  } else {
    return hn::And(hn::BitCast(BlockU8(), hn::ShiftRight<kShift>(words)), mask);
  }
}

// The numbers that codes of kBits stand for, except for a zero point: signed ones are int8.
template <int kBits, Codebook kCodebook>
struct BlockCodes {
  static constexpr bool kIsSigned = kCodebook != Codebook::kNone || kBits == 8;
  static constexpr int kLargest = kCodebook == Codebook::kE2m1 ? 12
                                  : kIsSigned                  ? 128
                                                               : (1 << kBits) - 1;
  // Offset of the plane behind that of the lowest bits.
  static constexpr size_t kPlaneBytes = (kBits >= 4 ? 4 : 2) * BlockTiles::kLineBytes;

  // Loads those of line kLine; `step` is where the vector's part of the first line begins.
  template <size_t kLine>
  static HWY_INLINE hn::Vec<BlockU8> Load(const uint8_t* step) {
    constexpr int kIndex = kLine;
    constexpr size_t kBytes = BlockTiles::kLineBytes;
    const BlockU8 d;
    if constexpr (kBits == 8) {
      return hn::LoadU(d, step + kLine * kBytes);
    } else if constexpr (kBits >= 4) {
      const auto low = MoveBits<kIndex % 2 * 4, 0x0f>(hn::LoadU(d, step + kLine / 2 * kBytes));
      if constexpr (kCodebook != Codebook::kNone) {
        const auto numbers = hn::LoadDup128(BlockI8(), NumbersOf(kCodebook));
        return hn::TableLookupBytes(hn::BitCast(d, numbers), low);
      } else if constexpr (kBits == 5) {
        const auto bits = hn::LoadU(d, step + kPlaneBytes);
        return hn::Or(low, MoveBits<kIndex - 4, 0x10>(bits));
      } else if constexpr (kBits == 6) {
        const auto bits = hn::LoadU(d, step + kPlaneBytes + kLine / 4 * kBytes);
        return hn::Or(low, MoveBits<kIndex % 4 * 2 - 4, 0x30>(bits));
      } else {
        return low;
      }
    } else {
      const auto low = MoveBits<kIndex % 4 * 2, 0x03>(hn::LoadU(d, step + kLine / 4 * kBytes));
      if constexpr (kBits == 2) return low;
      return hn::Or(low, MoveBits<kIndex - 2, 0x04>(hn::LoadU(d, step + kPlaneBytes)));
    }
  }
};

// Such codes, whose magnitudes are at most kLargest, as bytes: lines one behind another.
template <bool kIsSignedCode, int kLargestCode>
struct UnpackedCodes {
  static constexpr bool kIsSigned = kIsSignedCode;
  static constexpr int kLargest = kLargestCode;

  template <size_t kLine>
  static HWY_INLINE hn::Vec<BlockU8> Load(const uint8_t* step) {
    return hn::LoadU(BlockU8(), step + kLine * BlockTiles::kLineBytes);
  }
};

// Four activations, repeated for each output.
HWY_INLINE hn::Vec<BlockI8> FourActivations(const int8_t* values) {
  int32_t four;
  std::memcpy(&four, values, sizeof(four));
  return hn::BitCast(BlockI8(), hn::Set(BlockI32(), four));
}

// Adds up the products of lines of codes with activations: First begins a Sum, and Add goes on with
// up to kMaxLines lines, which are then added to a Total. Result is a total in 32 bits, one lane
// for each output. It is too large by kBias times the sum of the activations.
#if HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64 && !CRIA_OPS_IS_ARM_DOT_TARGET
template <class Codes>
struct BlockDots {
  // The products of the lower and the upper half of a vector; in a total, two lanes for each
  // output.
  struct Sum {
    int16x8_t lower;
    int16x8_t upper;
  };
  struct Total {
    int32x4_t lower;
    int32x4_t upper;
  };
  static constexpr size_t kMaxLines = 32767 / (127 * Codes::kLargest);
  static constexpr int32_t kBias = 0;

  // Four activations of 16, repeated for each output.
  template <size_t kLine>
  static HWY_INLINE int8x16_t Activations(const int8_t* values) {
    const int8x16_t sixteen = vld1q_s8(values + kLine / 4 * 16);
    return vreinterpretq_s8_s32(
        vdupq_laneq_s32(vreinterpretq_s32_s8(sixteen), static_cast<int>(kLine % 4)));
  }
  // In assembly, because compilers would widen the codes once for several rows.
  template <size_t kLine>
  static HWY_INLINE Sum First(hn::Vec<BlockU8> codes, const int8_t* values) {
    const int8x16_t weights = vreinterpretq_s8_u8(codes.raw);
    const int8x16_t activations = Activations<kLine>(values);
    Sum sum;
    asm("smull %0.8h, %1.8b, %2.8b" : "=w"(sum.lower) : "w"(weights), "w"(activations));
    asm("smull2 %0.8h, %1.16b, %2.16b" : "=w"(sum.upper) : "w"(weights), "w"(activations));
    return sum;
  }
  template <size_t kLine>
  static HWY_INLINE void Add(hn::Vec<BlockU8> codes, const int8_t* values, Sum& sum) {
    const int8x16_t weights = vreinterpretq_s8_u8(codes.raw);
    const int8x16_t activations = Activations<kLine>(values);
    asm("smlal %0.8h, %1.8b, %2.8b" : "+w"(sum.lower) : "w"(weights), "w"(activations));
    asm("smlal2 %0.8h, %1.16b, %2.16b" : "+w"(sum.upper) : "w"(weights), "w"(activations));
  }
  static HWY_INLINE Total Begin(const Sum& sum) {
    return {vpaddlq_s16(sum.lower), vpaddlq_s16(sum.upper)};
  }
  static HWY_INLINE void AddTo(Total& total, const Sum& sum) {
    total.lower = vpadalq_s16(total.lower, sum.lower);
    total.upper = vpadalq_s16(total.upper, sum.upper);
  }
  static HWY_INLINE hn::Vec<BlockI32> Result(const Total& total) {
    return hn::Vec<BlockI32>(vpaddq_s32(total.lower, total.upper));
  }
};
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
template <class Codes>
struct BlockDots {
  using Sum = hn::Vec<BlockI16>;  // Two lanes for each output.
  using Total = hn::Vec<BlockI32>;
  static constexpr size_t kMaxLines = 32767 / (2 * 127 * Codes::kLargest);
  static constexpr int32_t kBias = 0;
  template <size_t kLine>
  static HWY_INLINE Sum First(hn::Vec<BlockU8> codes, const int8_t* values) {
    auto activations = FourActivations(values + kLine * 4);
    // Unsigned times signed: of signed codes, the sign moves to the activations.
    if constexpr (Codes::kIsSigned) {
      const auto weights = hn::BitCast(BlockI8(), codes);
      activations = hn::IfNegativeThenNegOrUndefIfZero(weights, activations);
      codes = hn::BitCast(BlockU8(), hn::Abs(weights));
    }
    return hn::SatWidenMulPairwiseAdd(BlockI16(), codes, activations);
  }
  template <size_t kLine>
  static HWY_INLINE void Add(hn::Vec<BlockU8> codes, const int8_t* values, Sum& sum) {
    sum = hn::Add(sum, First<kLine>(codes, values));
    KeepOrder(sum);
  }
  static HWY_INLINE Total Begin(const Sum& sum) {
    return hn::WidenMulPairwiseAdd(BlockI32(), sum, hn::Set(BlockI16(), int16_t{1}));
  }
  static HWY_INLINE void AddTo(Total& total, const Sum& sum) {
    total = hn::Add(total, Begin(sum));
    KeepOrder(total);
  }
  static HWY_INLINE hn::Vec<BlockI32> Result(const Total& total) { return total; }
};
#else
template <class Codes>
struct BlockDots {
  using Sum = hn::Vec<BlockI32>;
  using Total = Sum;
  static constexpr size_t kMaxLines = 8;
  static constexpr int32_t kBias = Codes::kIsSigned ? kDotBias : 0;
  template <size_t kLine>
  static HWY_INLINE Sum First(hn::Vec<BlockU8> codes, const int8_t* values) {
    Sum sum = hn::Zero(BlockI32());
    Add<kLine>(codes, values, sum);
    return sum;
  }
  template <size_t kLine>
  static HWY_INLINE void Add(hn::Vec<BlockU8> codes, const int8_t* values, Sum& sum) {
#if CRIA_OPS_IS_ARM_DOT_TARGET
    const auto activations = hn::LoadU(BlockI8(), values + kLine / 4 * 16);
    sum = DotQuadsByLane<kLine % 4>(hn::BitCast(BlockI8(), codes), activations, sum);
#else
#if HWY_ARCH_X86
    const auto weights =
        Codes::kIsSigned ? hn::Xor(codes, hn::Set(BlockU8(), uint8_t{kDotBias})) : codes;
#else
    const auto weights = hn::BitCast(BlockI8(), codes);
#endif
    const auto activations = FourActivations(values + kLine * 4);
    sum = hn::SumOfMulQuadAccumulate(BlockI32(), weights, activations, sum);
#endif
    KeepOrder(sum);
  }
  static HWY_INLINE Total Begin(const Sum& sum) { return sum; }
  static HWY_INLINE void AddTo(Total& total, const Sum& sum) { total = hn::Add(total, sum); }
  static HWY_INLINE hn::Vec<BlockI32> Result(const Total& total) { return total; }
};
#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_BLOCK_DOTS_INL_H_
