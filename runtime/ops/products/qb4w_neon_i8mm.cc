// int4 products for Arm processors with products of matrices of bytes (SMMLA).

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_matrices-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

// A vector of weights has those of two outputs for 8 neighbouring inputs in its low nibbles, and
// for the next 8 in its high ones.
constexpr size_t kPairBytes = kMatrixInputs * kNeonOutputs;
// One register of activations.
constexpr size_t kStepInputs = 2 * kMatrixInputs;
// The sums of two pairs for half a tile, or of one pair for a whole one, as integers and as floats,
// take 16 of 32 registers each.
constexpr size_t kMaxRows = 4;

// Adds to a block's sums the products of the activations of 16 inputs.
template <size_t kPairs, size_t kVectors>
[[gnu::always_inline]] inline void AddProducts(const std::byte* packed,
                                               const PairOfRows (&activations)[kPairs],
                                               int32x4_t (&block_sums)[kPairs][kVectors]) {
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    const uint8x16_t pairs = vld1q_u8(reinterpret_cast<const uint8_t*>(packed) + 16 * v);
    const int8x16_t low = vreinterpretq_s8_u8(vshlq_n_u8(pairs, 4));
    const int8x16_t high = vreinterpretq_s8_u8(vandq_u8(pairs, vdupq_n_u8(0xf0)));
#pragma GCC unroll 2
    for (size_t p = 0; p < kPairs; ++p) {
      AddMatrixProduct(activations[p].low, low, block_sums[p][v]);
      AddMatrixProduct(activations[p].high, high, block_sums[p][v]);
    }
  }
}

// Adds the sums of a block of activations times the outputs' scales and the rows'.
template <size_t kRows, size_t kVectors, size_t kPairs>
[[gnu::always_inline]] inline void AddScaled(const int32x4_t (&block_sums)[kPairs][kVectors],
                                             const uint16_t* scales,
                                             const float* const (&row_scales)[kRows], size_t block,
                                             MatrixSums<kRows, kVectors>& sums) {
#pragma GCC unroll 2
  for (size_t p = 0; p < kPairs; ++p) {
    const float32x4_t row_scale = ScalesOfPair(row_scales, p, block);
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; v += 2) {
      const float32x4_t scale = WidenBf16(vld1_u16(scales + 2 * v));
      if constexpr (kRows == 1) {
        const int32x4_t block_sum = SumsOfRow(block_sums[0][v], block_sums[0][v + 1], false);
        sums[0][v / 2] =
            vfmaq_f32(sums[0][v / 2], vcvtq_f32_s32(block_sum), vmulq_f32(scale, row_scale));
      } else {
        const float32x4_t scale01 = vmulq_f32(SumsOfRow(scale, scale, false), row_scale);
        const float32x4_t scale23 = vmulq_f32(SumsOfRow(scale, scale, true), row_scale);
        sums[p][v] = vfmaq_f32(sums[p][v], vcvtq_f32_s32(block_sums[p][v]), scale01);
        sums[p][v + 1] = vfmaq_f32(sums[p][v + 1], vcvtq_f32_s32(block_sums[p][v + 1]), scale23);
      }
    }
  }
}

// Multiplies all rows by `kVectors` vectors of 2 outputs, from vector `first` of the tile on.
struct Int4Part {
  template <size_t kRows, size_t kVectors>
  [[gnu::always_inline]] static void Multiply(const TileProduct& product, size_t first) {
    constexpr size_t kPairs = PairedRows<kRows>::kPairs;
    const PackedTiles& tiles = product.tiles;
    const PairedRows<kRows> rows(product.rows);
    const float* row_scales[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) row_scales[r] = product.Scales(r);
    MatrixSums<kRows, kVectors> sums;
    Clear(sums);
    const std::byte* packed = product.tile + tiles.blocks_offset() + 16 * first;
    for (size_t input = 0; input < tiles.input_channels;) {
      const auto* scales =
          reinterpret_cast<const uint16_t*>(packed - 16 * first + tiles.scales_offset()) +
          2 * first;
      const size_t end = input + tiles.block_size;
      do {
        int32x4_t block_sums[kPairs][kVectors];
        Clear(block_sums);
#pragma GCC unroll 2
        for (size_t step = 0; step < kActivationBlock; step += kStepInputs, packed += kPairBytes) {
          PairOfRows activations[kPairs];
          rows.Load(input + step, activations);
          AddProducts(packed, activations, block_sums);
        }
        AddScaled<kRows>(block_sums, scales, row_scales, input / kActivationBlock, sums);
        input += kActivationBlock;
      } while (input != end);
      packed += kNeonOutputs * sizeof(uint16_t);
    }
    float32x4_t results[kRows][kVectors / 2];
    ToRows<kRows, kVectors>(sums, results);
    StoreResults<1>(product, first / 2, results);
  }
};

}  // namespace

const TileKernel* Qb4wKernelForNeonI8mm() {
  return NeonMatrixKernel<MatrixRows<Int4Part>, kMaxRows>();
}

}  // namespace cria::ops
