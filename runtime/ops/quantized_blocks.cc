#include "ops/quantized_blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized_blocks.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, kActivationBlock / 2>;
using I32 = hn::RebindToSigned<F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kVectors = kActivationBlock / kLanes;

// Quantizes a whole block, and writes the sums of the int8 of its halves.
void QuantizeBlock(const float* values, int8_t* output, float& scale, int32_t (&half_sums)[2]) {
  constexpr float kHighest = 127.0f;
  // The factor of a smaller block would overflow.
  constexpr float kMinMagnitude = 1e-35f;
  constexpr int32_t kInfinityBits = 0x7f800000;
  const F32 d;
  const I32 di32;
  const hn::Rebind<int8_t, F32> di8;
  // As integers, the bits of magnitudes have the same order; infinity and NaN are the largest.
  auto largest = hn::Zero(di32);
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    const auto magnitudes = hn::Abs(hn::LoadU(d, values + v * kLanes));
    largest = hn::Max(largest, hn::BitCast(di32, magnitudes));
  }
  const int32_t bits = hn::ReduceMax(di32, largest);
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof(magnitude));
  if (bits >= kInfinityBits || magnitude < kMinMagnitude) {
    scale = bits >= kInfinityBits ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    std::fill_n(output, kActivationBlock, int8_t{0});
    half_sums[0] = half_sums[1] = 0;
    return;
  }
  scale = magnitude / kHighest;
  const auto factor = hn::Set(d, kHighest / magnitude);
  const auto rounder = hn::Set(d, kRounder);
  const auto bias = hn::Set(di32, kRounderBits);
  HWY_UNROLL(2)
  for (size_t half = 0; half < 2; ++half) {
    auto sum = hn::Zero(di32);
    HWY_UNROLL(4)
    for (size_t i = 0; i < kVectors / 2; ++i) {
      const size_t v = half * kVectors / 2 + i;
      const auto rounded = hn::MulAdd(hn::LoadU(d, values + v * kLanes), factor, rounder);
      const auto steps = hn::Sub(hn::BitCast(di32, rounded), bias);
      sum = hn::Add(sum, steps);
      hn::StoreU(hn::DemoteTo(di8, steps), di8, output + v * kLanes);
    }
    half_sums[half] = hn::ReduceSum(di32, sum);
  }
}

int32_t BlockOffset(int32_t sum) { return (HWY_TARGET == HWY_AVX2 ? -8 : -128) * sum; }

void QuantizeBlocks(const float* row, size_t size, size_t padded_size, int8_t* output) {
  const size_t num_blocks = QuantizedBlocks::Blocks(padded_size);
  auto* const scales = reinterpret_cast<float*>(output + num_blocks * kActivationBlock);
  auto* const offsets = reinterpret_cast<int32_t*>(scales + num_blocks);
  auto* const sums = reinterpret_cast<float*>(offsets + num_blocks);
  auto* const half_sums = sums + num_blocks;
  for (size_t b = 0; b < num_blocks; ++b) {
    const size_t first = b * kActivationBlock;
    const float* values = row + first;
    float padded[kActivationBlock];
    if (size < first + kActivationBlock) {
      std::fill_n(padded, kActivationBlock, 0.0f);
      if (first < size) std::copy_n(values, size - first, padded);
      values = padded;
    }
    int32_t steps[2];
    QuantizeBlock(values, output + first, scales[b], steps);
    offsets[b] = BlockOffset(steps[0] + steps[1]);
    sums[b] = scales[b] * static_cast<float>(steps[0] + steps[1]);
    half_sums[2 * b] = scales[b] * static_cast<float>(steps[0]);
    half_sums[2 * b + 1] = scales[b] * static_cast<float>(steps[1]);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(BlockOffset);
HWY_EXPORT(QuantizeBlocks);

int32_t BlockOffset(int32_t sum) { return HWY_DYNAMIC_DISPATCH(BlockOffset)(sum); }

void QuantizeBlocks(const float* row, size_t size, size_t padded_size, int8_t* output) {
  HWY_DYNAMIC_DISPATCH(QuantizeBlocks)(row, size, padded_size, output);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
