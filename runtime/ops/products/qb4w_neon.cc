// int4 products for Arm processors without dot products. XNNPACK's kernels for these widen every
// number to 16 bits and multiply four at a time; SMLAL multiplies eight bytes.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_byte_span-inl.h"
#include "ops/products/neon_bytes-inl.h"
#include "ops/products/neon_int4_span-inl.h"
#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

// A byte has the weights of one output for two neighbouring inputs.
constexpr size_t kGroupInputs = 1;
// The 16-bit sums of so many rows, four unpacked vectors of weights and eight of activations fit
// into the registers.
constexpr size_t kMaxRows = 8;
// Inputs whose products are added in 16 bits: a block of activations. A sum is at most
// 32 * 8 * 127 < 2^15 in magnitude.
constexpr size_t kStepInputs = kActivationBlock;
// The compiler keeps the sums of up to so many rows in registers, or most of them.
constexpr size_t kMaxRowsInRegisters = 6;

using Sums = float32x4_t[kNeonVectors];

// The weights of 16 outputs for four inputs.
constexpr size_t kFourBytes = kInputsAtOnce / 2 * kNeonOutputs;

// The weights of 16 outputs for the next four inputs.
[[gnu::always_inline]] inline void Unpack(const std::byte* packed,
                                          int8x16_t (&weights)[kInputsAtOnce]) {
#pragma GCC unroll 2
  for (size_t i = 0; i < 2; ++i) {
    const int8x16_t pair = vld1q_s8(reinterpret_cast<const int8_t*>(packed) + 16 * i);
    weights[2 * i] = vshrq_n_s8(vshlq_n_s8(pair, 4), 4);
    weights[2 * i + 1] = vshrq_n_s8(pair, 4);
  }
}

// Adds the sums of a block of activations, times the outputs' scales and the rows'.
template <size_t kRows>
[[gnu::always_inline]] inline void AddScaled(const std::byte* scales,
                                             const float* const (&row_scales)[kRows], size_t block,
                                             const Sums16 (&block_sums)[kRows],
                                             Sums (&sums)[kRows]) {
  float32x4_t scale[kNeonVectors];
#pragma GCC unroll 2
  for (size_t i = 0; i < 2; ++i) {
    const uint16x8_t eight = vld1q_u16(reinterpret_cast<const uint16_t*>(scales) + 8 * i);
    scale[2 * i] = WidenBf16(vget_low_u16(eight));
    scale[2 * i + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(eight, 16));
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    const float row_scale = row_scales[r][block];
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(block_sums[r][i])));
      const float32x4_t high = vcvtq_f32_s32(vmovl_high_s16(block_sums[r][i]));
      const float32x4_t low_scale = vmulq_n_f32(scale[2 * i], row_scale);
      const float32x4_t high_scale = vmulq_n_f32(scale[2 * i + 1], row_scale);
      sums[r][2 * i] = vfmaq_f32(sums[r][2 * i], low, low_scale);
      sums[r][2 * i + 1] = vfmaq_f32(sums[r][2 * i + 1], high, high_scale);
    }
    // Keeps the sums of many rows in memory until here, rather than some of them.
    if constexpr (kRows > kMaxRowsInRegisters) asm volatile("" : "+m"(sums[r]));
  }
}

template <size_t kRows>
void MultiplyInt4Rows(const TileProduct& product) {
  const PackedTiles& tiles = product.tiles;
  const int8_t* values[kRows];
  const float* row_scales[kRows];
  Sums sums[kRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    values[r] = product.Row(r);
    row_scales[r] = product.Scales(r);
#pragma GCC unroll 4
    for (auto& sum : sums[r]) sum = vdupq_n_f32(0.0f);
  }
  const std::byte* packed = product.tile + tiles.blocks_offset();
  const size_t num_blocks = tiles.input_channels / kActivationBlock;
  for (size_t block = 0; block < num_blocks;) {
    const std::byte* scales = packed + tiles.scales_offset();
    for (; packed != scales; ++block) {
      Sums16 block_sums[kRows];
      const auto unpack = [&](auto& weights) {
        Unpack(packed, weights);
        packed += kFourBytes;
      };
      MultiplyFour<true>(unpack, values, block_sums);
#pragma GCC unroll 8
      for (size_t i = kInputsAtOnce; i < kStepInputs; i += kInputsAtOnce) {
        MultiplyFour<false>(unpack, values, block_sums);
      }
      AddScaled<kRows>(scales, row_scales, block, block_sums, sums);
    }
    packed = scales + kNeonOutputs * sizeof(uint16_t);
  }
  // The stored scales are sixteenths.
  StoreResults<16>(product, 0, sums);
}

struct Int4Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyInt4Rows<kRows>(product);
  }
};

// Unpacking a tile takes as many instructions as so many rows gain by it.
constexpr size_t kMinManyRows = 20;

struct ManyRows {
  static constexpr int kFactor = 16;

  static void UnpackStep(const std::byte* packed, int8_t* weights) {
    for (size_t input = 0; input < kActivationBlock; input += kInputsAtOnce) {
      int8x16_t four[kInputsAtOnce];
      Unpack(packed, four);
      packed += kFourBytes;
#pragma GCC unroll 4
      for (size_t i = 0; i < kInputsAtOnce; ++i) vst1q_s8(weights + 16 * (input + i), four[i]);
    }
  }
  static void Add(const TileProduct& product, const int8_t* weights, const float* scales,
                  size_t input, size_t steps, float (*sums)[kNeonOutputs]) {
    ByteSpanProduct<ByteOrder::kByInput, 1, false, false>::Add(
        product, {.weights = weights, .scales = scales}, input, steps, sums);
  }
};

}  // namespace

const TileKernel* Qb4wKernelForNeon() {
  return &kNeonKernel<Int4Rows, kGroupInputs, kMaxRows, MultiplyManyInt4Rows<ManyRows>,
                      kMinManyRows>;
}

}  // namespace cria::ops
