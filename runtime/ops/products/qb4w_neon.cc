// int4 products for Arm processors without dot products. XNNPACK's kernels for these widen every
// number to 16 bits and multiply four at a time; SMLSL multiplies eight bytes.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

// A byte has the weights of one output for two neighbouring inputs.
constexpr size_t kGroupInputs = 1;
// The 16-bit sums of so many rows, four unpacked vectors of weights and eight of activations fit
// into the registers.
constexpr size_t kMaxRows = 8;
// Inputs whose products are added in 16 bits. Minus the sum is at least -32 * -8 * -128 = -2^15,
// which fits; the sum itself would not. So products are subtracted.
constexpr size_t kStepInputs = 32;
constexpr size_t kInputsAtOnce = 4;
// The compiler keeps the sums of up to so many rows in registers, or most of them.
constexpr size_t kMaxRowsInRegisters = 6;

// A row's sums for outputs 0 to 7 and 8 to 15 of a tile.
using Sums16 = int16x8_t[2];
using Sums = float32x4_t[kNeonVectors];

// Four activations, each repeated 16 times. LD4R needs consecutive registers, which the compilers
// have no common notation for, so they are named here: two sets, because two rows are multiplied by
// turns.
template <bool kIsOdd>
struct FourInputs;

template <>
struct FourInputs<false> {
  int8x16_t input[kInputsAtOnce];
  [[gnu::always_inline]] void LoadNext(const int8_t*& values) {
    register int8x16_t a0 asm("v24");
    register int8x16_t a1 asm("v25");
    register int8x16_t a2 asm("v26");
    register int8x16_t a3 asm("v27");
    asm volatile("ld4r {v24.16b-v27.16b}, [%4], #4"
                 : "=w"(a0), "=w"(a1), "=w"(a2), "=w"(a3), "+r"(values));
    input[0] = a0, input[1] = a1, input[2] = a2, input[3] = a3;
  }
};

template <>
struct FourInputs<true> {
  int8x16_t input[kInputsAtOnce];
  [[gnu::always_inline]] void LoadNext(const int8_t*& values) {
    register int8x16_t a0 asm("v28");
    register int8x16_t a1 asm("v29");
    register int8x16_t a2 asm("v30");
    register int8x16_t a3 asm("v31");
    asm volatile("ld4r {v28.16b-v31.16b}, [%4], #4"
                 : "=w"(a0), "=w"(a1), "=w"(a2), "=w"(a3), "+r"(values));
    input[0] = a0, input[1] = a1, input[2] = a2, input[3] = a3;
  }
};

// Subtracts the products of one activation and 16 weights. As intrinsics, the compiler would widen
// the weights once for several rows and not have enough registers.
[[gnu::always_inline]] inline void SubtractProducts(int8x16_t weights, int8x16_t input,
                                                    Sums16& sums) {
  asm volatile("smlsl %0.8h, %1.8b, %2.8b" : "+w"(sums[0]) : "w"(weights), "w"(input));
  asm volatile("smlsl2 %0.8h, %1.16b, %2.16b" : "+w"(sums[1]) : "w"(weights), "w"(input));
}

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

template <size_t kRows>
[[gnu::always_inline]] inline void MultiplyFour(const std::byte* packed,
                                                const int8_t* (&values)[kRows],
                                                Sums16 (&sums)[kRows]) {
  int8x16_t weights[kInputsAtOnce];
  FourInputs<false> even;
  FourInputs<true> odd;
  even.LoadNext(values[0]);
  if constexpr (kRows > 1) odd.LoadNext(values[1]);
  Unpack(packed, weights);
  // Two rows by turns, so that an addition need not wait for the one before it.
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; r += 2) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kInputsAtOnce; ++i) {
      SubtractProducts(weights[i], even.input[i], sums[r]);
      if (r + 1 < kRows) SubtractProducts(weights[i], odd.input[i], sums[r + 1]);
    }
    if (r + 2 < kRows) even.LoadNext(values[r + 2]);
    if (r + 3 < kRows) odd.LoadNext(values[r + 3]);
  }
}

// Adds minus the sums, times the outputs' scales.
template <size_t kRows>
[[gnu::always_inline]] inline void AddScaled(const std::byte* scales, const Sums16 (&minus)[kRows],
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
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(minus[r][i])));
      const float32x4_t high = vcvtq_f32_s32(vmovl_high_s16(minus[r][i]));
      sums[r][2 * i] = vfmaq_f32(sums[r][2 * i], low, scale[2 * i]);
      sums[r][2 * i + 1] = vfmaq_f32(sums[r][2 * i + 1], high, scale[2 * i + 1]);
    }
    // Keeps the sums of many rows in memory until here, rather than some of them.
    if constexpr (kRows > kMaxRowsInRegisters) asm volatile("" : "+m"(sums[r]));
  }
}

template <size_t kRows>
void MultiplyInt4Rows(const TileProduct& product) {
  const PackedTiles& tiles = product.tiles;
  const int8_t* values[kRows];
  Sums minus_sums[kRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    values[r] = product.rows.values + r * product.rows.stride;
#pragma GCC unroll 4
    for (auto& sum : minus_sums[r]) sum = vdupq_n_f32(0.0f);
  }
  const std::byte* packed = product.tile + tiles.blocks_offset();
  for (size_t input = 0; input < tiles.input_channels; input += tiles.block_size) {
    const std::byte* scales = packed + tiles.scales_offset();
    while (packed != scales) {
      Sums16 step_sums[kRows];
#pragma GCC unroll 8
      for (auto& sums : step_sums) sums[0] = sums[1] = vdupq_n_s16(0);
#pragma GCC unroll 8
      for (size_t i = 0; i < kStepInputs; i += kInputsAtOnce) {
        MultiplyFour<kRows>(packed, values, step_sums);
        packed += kInputsAtOnce / 2 * kNeonOutputs;
      }
      AddScaled<kRows>(scales, step_sums, minus_sums);
    }
    packed = scales + kNeonOutputs * sizeof(uint16_t);
  }
  // The stored scales are sixteenths.
  StoreResults<-16>(product, 0, minus_sums);
}

struct Int4Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyInt4Rows<kRows>(product);
  }
};

}  // namespace

const TileKernel* Qb4wKernelForNeon() { return &kNeonKernel<Int4Rows, kGroupInputs, kMaxRows>; }

}  // namespace cria::ops
