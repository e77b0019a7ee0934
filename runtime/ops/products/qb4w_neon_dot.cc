// int4 products for Arm processors with dot products of bytes (SDOT).

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_dot_span-inl.h"
#include "ops/products/neon_int4_span-inl.h"
#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

// A vector of weights has those of four outputs for four neighbouring inputs in its low nibbles,
// and for the next four in its high ones.
constexpr size_t kGroupInputs = 4;
constexpr size_t kPairBytes = kGroupInputs * kNeonOutputs;
// The sums of six rows for half a tile, as integers and as floats, take 24 of 32 registers.
constexpr size_t kMaxRows = 6;
constexpr size_t kMaxRowsOfWholeTile = 2;
// One register of activations.
constexpr size_t kStepInputs = 16;

// Four times 16 weights, times 16: those of `kVectors` vectors for the next 8 inputs.
template <size_t kVectors>
struct Weights {
  int8x16_t low[kVectors];
  int8x16_t high[kVectors];

  [[gnu::always_inline]] explicit Weights(const std::byte* packed) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const uint8x16_t pairs = vld1q_u8(reinterpret_cast<const uint8_t*>(packed) + 16 * v);
      low[v] = vreinterpretq_s8_u8(vshlq_n_u8(pairs, 4));
      high[v] = vreinterpretq_s8_u8(vandq_u8(pairs, vdupq_n_u8(0xf0)));
    }
  }
};

template <size_t kLane, size_t kVectors>
[[gnu::always_inline]] inline void AddDots(const int8x16_t (&weights)[kVectors],
                                           int8x16_t activations, int32x4_t (&sums)[kVectors]) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) AddDot<kLane>(weights[v], activations, sums[v]);
}

// Adds to a block's sums the products of 16 inputs, from `input` on.
template <size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void AddStep(const std::byte* packed, const int8_t* (&values)[kRows],
                                           size_t input, int32x4_t (&block_sums)[kRows][kVectors]) {
  if constexpr (kVectors == kNeonVectors) {
    // One after the other, because there are not enough registers for both.
    int8x16_t activations[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(values[r], input);
    {
      const Weights<kVectors> weights(packed);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        AddDots<0>(weights.low, activations[r], block_sums[r]);
        AddDots<1>(weights.high, activations[r], block_sums[r]);
      }
    }
    const Weights<kVectors> weights(packed + kPairBytes);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      AddDots<2>(weights.low, activations[r], block_sums[r]);
      AddDots<3>(weights.high, activations[r], block_sums[r]);
    }
  } else {
    const Weights<kVectors> weights0(packed);
    const Weights<kVectors> weights1(packed + kPairBytes);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const int8x16_t activations = LoadActivations(values[r], input);
      AddDots<0>(weights0.low, activations, block_sums[r]);
      AddDots<1>(weights0.high, activations, block_sums[r]);
      AddDots<2>(weights1.low, activations, block_sums[r]);
      AddDots<3>(weights1.high, activations, block_sums[r]);
    }
  }
}

// Multiplies all rows by `kVectors` vectors of 4 outputs, from vector `first` of the tile on.
struct Int4Part {
  template <size_t kRows, size_t kVectors>
  [[gnu::always_inline]] static void Multiply(const TileProduct& product, size_t first) {
    const PackedTiles& tiles = product.tiles;
    const int8_t* values[kRows];
    const float* row_scales[kRows];
    float32x4_t sums[kRows][kVectors];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      values[r] = product.Row(r);
      row_scales[r] = product.Scales(r);
    }
    Clear(sums);
    const std::byte* packed = product.tile + tiles.blocks_offset() + 16 * first;
    for (size_t input = 0; input < tiles.input_channels;) {
      const auto* scales =
          reinterpret_cast<const uint16_t*>(packed - 16 * first + tiles.scales_offset()) +
          4 * first;
      const size_t end = input + tiles.block_size;
      do {
        int32x4_t block_sums[kRows][kVectors];
        Clear(block_sums);
#pragma GCC unroll 2
        for (size_t step = 0; step < kActivationBlock; step += kStepInputs) {
          AddStep(packed, values, input + step, block_sums);
          packed += 2 * kPairBytes;
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          const float32x4_t scale = WidenBf16(vld1_u16(scales + 4 * v));
#pragma GCC unroll 8
          for (size_t r = 0; r < kRows; ++r) {
            const float32x4_t row_scale =
                vmulq_n_f32(scale, row_scales[r][input / kActivationBlock]);
            sums[r][v] = vfmaq_f32(sums[r][v], vcvtq_f32_s32(block_sums[r][v]), row_scale);
          }
        }
        input += kActivationBlock;
      } while (input != end);
      packed += kNeonOutputs * sizeof(uint16_t);
    }
    StoreResults<1>(product, first, sums);
  }
};

struct ManyRows {
  static constexpr int kFactor = 1;

  static void UnpackStep(const std::byte* packed, int8_t* weights) {
#pragma GCC unroll 2
    for (size_t line = 0; line < kDotStepLines; line += 2, packed += kPairBytes) {
      const Weights<kNeonVectors> unpacked(packed);
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonVectors; ++v) {
        vst1q_s8(weights + line * kDotLineBytes + 16 * v, unpacked.low[v]);
        vst1q_s8(weights + (line + 1) * kDotLineBytes + 16 * v, unpacked.high[v]);
      }
    }
  }
  static void Add(const TileProduct& product, const int8_t* weights, const float* scales,
                  size_t input, size_t steps, float (*sums)[kNeonOutputs]) {
    DotSpanProduct<1, false>::Add(product, {.weights = weights, .scales = scales}, input, steps,
                                  sums);
  }
};

}  // namespace

const TileKernel* Qb4wKernelForNeonDot() {
  return NeonDotKernel<WholeTileOrHalves<Int4Part, kMaxRowsOfWholeTile>, kGroupInputs, kMaxRows,
                       MultiplyManyInt4Rows<ManyRows>, kMaxRows + 1>();
}

}  // namespace cria::ops
