#include "ops/quantized_blocks.h"

#include <algorithm>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized_blocks.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Some processors, such as AMD's Zen 4, take two passes for vectors of 512 bits.
using F32 = hn::CappedTag<float, 8>;
using I32 = hn::RebindToSigned<F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kVectors = kActivationBlock / kLanes;
constexpr int32_t kInfinityBits = 0x7f800000;

// Blocks that take each step together: while one waits for its step before, others are computed.
constexpr size_t kTogether = 8;
using BlocksF32 = hn::CappedTag<float, kTogether>;
using BlocksI32 = hn::RebindToSigned<BlocksF32>;

struct BlockGroup {
  alignas(32) int32_t largest_bits[kTogether] = {};
  alignas(32) float scales[kTogether];
  alignas(32) float factors[kTogether];
  alignas(32) int32_t half_sums[2][kTogether];
};

// The bits of a block's largest magnitude. As integers, the bits of magnitudes have the same order;
// infinity and NaN are the largest.
HWY_INLINE int32_t LargestBits(const float* values) {
  const I32 di32;
  auto largest = hn::Zero(di32);
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    const auto magnitudes = hn::Abs(hn::LoadU(F32(), values + v * kLanes));
    largest = hn::Max(largest, hn::BitCast(di32, magnitudes));
  }
  return hn::ReduceMax(di32, largest);
}

// The quotients, rounded to the nearest float. Those of Highway on ARMv7 are products with
// approximate reciprocals, and the reciprocal of the largest floats is 0 there.
HWY_INLINE hn::Vec<BlocksF32> Divide(hn::Vec<BlocksF32> dividends, hn::Vec<BlocksF32> divisors) {
#if HWY_ARCH_ARM_V7
  const BlocksF32 d;
  alignas(32) float quotients[kTogether];
  alignas(32) float by[kTogether];
  hn::Store(dividends, d, quotients);
  hn::Store(divisors, d, by);
  for (size_t i = 0; i < hn::Lanes(d); ++i) quotients[i] /= by[i];
  return hn::Load(d, quotients);
#else
  return hn::Div(dividends, divisors);
#endif
}

// Makes scales, and what values are multiplied by, of the largest magnitudes.
HWY_INLINE void MakeScales(BlockGroup& group) {
  constexpr float kHighest = 127.0f;
  // The factor of a smaller block would overflow.
  constexpr float kMinMagnitude = 1e-35f;
  const BlocksF32 d;
  HWY_UNROLL(2)
  for (size_t i = 0; i < kTogether; i += hn::Lanes(d)) {
    const auto bits = hn::Load(BlocksI32(), group.largest_bits + i);
    const auto magnitudes = hn::BitCast(d, bits);
    const auto highest = hn::Set(d, kHighest);
    const auto is_small = hn::Lt(bits, hn::BitCast(BlocksI32(), hn::Set(d, kMinMagnitude)));
    const auto is_finite = hn::Lt(bits, hn::Set(BlocksI32(), kInfinityBits));
    const auto scales =
        hn::IfThenElse(hn::RebindMask(d, is_finite), Divide(magnitudes, highest), hn::NaN(d));
    hn::Store(hn::IfThenZeroElse(hn::RebindMask(d, is_small), scales), d, group.scales + i);
    hn::Store(hn::IfThenZeroElse(hn::RebindMask(d, is_small), Divide(highest, magnitudes)), d,
              group.factors + i);
  }
}

// Writes the int8 of block b of the group, whose values are finite, and the sums of its halves.
HWY_INLINE void RoundBlock(const float* values, BlockGroup& group, size_t b, int8_t* output) {
  const F32 d;
  const I32 di32;
  const hn::Rebind<int8_t, F32> di8;
  const auto factors = hn::Set(d, group.factors[b]);
  const auto rounder = hn::Set(d, kRounder);
  const auto bias = hn::Set(di32, kRounderBits);
  HWY_UNROLL(2)
  for (size_t half = 0; half < 2; ++half) {
    auto sum = hn::Zero(di32);
    HWY_UNROLL(4)
    for (size_t i = 0; i < kVectors / 2; ++i) {
      const size_t v = half * kVectors / 2 + i;
      const auto rounded = hn::MulAdd(hn::LoadU(d, values + v * kLanes), factors, rounder);
      const auto steps = hn::Sub(hn::BitCast(di32, rounded), bias);
      sum = hn::Add(sum, steps);
      hn::StoreU(hn::DemoteTo(di8, steps), di8, output + v * kLanes);
    }
    group.half_sums[half][b] = hn::ReduceSum(di32, sum);
  }
}

// Quantizes up to kTogether whole blocks.
void QuantizeGroup(const float* values, size_t num_blocks, int8_t* output, BlockGroup& group) {
  for (size_t b = 0; b < num_blocks; ++b) {
    group.largest_bits[b] = LargestBits(values + b * kActivationBlock);
  }
  MakeScales(group);
  for (size_t b = 0; b < num_blocks; ++b) {
    int8_t* const codes = output + b * kActivationBlock;
    if (group.largest_bits[b] < kInfinityBits) {
      RoundBlock(values + b * kActivationBlock, group, b, codes);
    } else {
      std::fill_n(codes, kActivationBlock, int8_t{0});
      group.half_sums[0][b] = group.half_sums[1][b] = 0;
    }
  }
}

// Sums are multiplied by eight with AVX2, and otherwise by 128.
constexpr int kOffsetBits = HWY_TARGET == HWY_AVX2 ? 3 : 7;

int32_t BlockOffset(int32_t sum) { return -(sum * (1 << kOffsetBits)); }

// Where the numbers of a row's blocks are, beside its int8.
struct BlockNumbers {
  float* scales;
  int32_t* offsets;
  float* sums;
  float* half_sums;
};

template <class D>
HWY_INLINE void StoreUpTo(size_t count, hn::Vec<D> numbers, D d, hn::TFromD<D>* to) {
  // Some processors take long to store a part of a vector.
  if (count >= hn::Lanes(d)) {
    hn::StoreU(numbers, d, to);
  } else {
    hn::StoreN(numbers, d, to, count);
  }
}

// Stores the numbers of `count` blocks of a group as those of blocks from `first` on.
HWY_INLINE void StoreNumbers(const BlockGroup& group, size_t count, size_t first,
                             const BlockNumbers& numbers) {
  const BlocksF32 d;
  const BlocksI32 di32;
  HWY_UNROLL(2)
  for (size_t i = 0; i < kTogether; i += hn::Lanes(d)) {
    if (i >= count) break;
    const size_t left = count - i;
    const auto scales = hn::Load(d, group.scales + i);
    const auto first_sums = hn::Load(di32, group.half_sums[0] + i);
    const auto second_sums = hn::Load(di32, group.half_sums[1] + i);
    const auto sums = hn::Add(first_sums, second_sums);
    StoreUpTo(left, scales, d, numbers.scales + first + i);
    StoreUpTo(left, hn::Neg(hn::ShiftLeft<kOffsetBits>(sums)), di32, numbers.offsets + first + i);
    StoreUpTo(left, hn::Mul(scales, hn::ConvertTo(d, sums)), d, numbers.sums + first + i);
    alignas(32) float half_sums[2 * kTogether];
    hn::StoreInterleaved2(hn::Mul(scales, hn::ConvertTo(d, first_sums)),
                          hn::Mul(scales, hn::ConvertTo(d, second_sums)), d, half_sums);
    std::copy_n(half_sums, 2 * std::min(left, hn::Lanes(d)), numbers.half_sums + 2 * (first + i));
  }
}

void QuantizeBlocks(const float* row, size_t size, size_t padded_size, BlockRange blocks,
                    int8_t* output) {
  const size_t num_blocks = QuantizedBlocks::Blocks(padded_size);
  auto* const scales = reinterpret_cast<float*>(output + num_blocks * kActivationBlock);
  auto* const offsets = reinterpret_cast<int32_t*>(scales + num_blocks);
  auto* const sums = reinterpret_cast<float*>(offsets + num_blocks);
  const BlockNumbers numbers = {scales, offsets, sums, sums + num_blocks};
  for (size_t first = blocks.begin; first < blocks.end;) {
    const size_t begin = first * kActivationBlock;
    const size_t whole = size > begin ? (size - begin) / kActivationBlock : 0;
    BlockGroup group;
    size_t count = std::min({kTogether, blocks.end - first, whole});
    if (count > 0) {
      QuantizeGroup(row + begin, count, output + begin, group);
    } else {
      // The row ends in this block, or before it.
      float padded[kActivationBlock] = {};
      if (begin < size) std::copy(row + begin, row + size, padded);
      count = 1;
      QuantizeGroup(padded, count, output + begin, group);
    }
    StoreNumbers(group, count, first, numbers);
    first += count;
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(BlockOffset);
HWY_EXPORT(QuantizeBlocks);

int32_t BlockOffset(int32_t sum) { return HWY_DYNAMIC_DISPATCH(BlockOffset)(sum); }

void QuantizeBlocks(const float* row, size_t size, size_t padded_size, BlockRange blocks,
                    int8_t* output) {
  HWY_DYNAMIC_DISPATCH(QuantizeBlocks)(row, size, padded_size, blocks, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
