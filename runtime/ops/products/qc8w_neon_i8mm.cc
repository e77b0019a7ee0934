// int8 products for Arm processors with products of matrices of bytes (SMMLA).

#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/products/neon_matrices-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

constexpr size_t kGroupBytes = kMatrixInputs * kNeonOutputs;
// One register of activations.
constexpr size_t kStepInputs = 2 * kMatrixInputs;
// The sums of two pairs for half a tile, or of one pair for a whole one, as integers and as floats,
// take 16 of 32 registers each.
constexpr size_t kMaxRows = 4;

// Adds the products of all rows and one group of inputs.
template <int8x16_t PairOfRows::* kGroup, size_t kPairs, size_t kVectors>
[[gnu::always_inline]] inline void AddGroup(const std::byte* packed,
                                            const PairOfRows (&activations)[kPairs],
                                            int32x4_t (&sums)[kPairs][kVectors]) {
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    const int8x16_t weights = vld1q_s8(reinterpret_cast<const int8_t*>(packed) + 16 * v);
#pragma GCC unroll 4
    for (size_t p = 0; p < kPairs; ++p) {
      AddMatrixProduct(activations[p].*kGroup, weights, sums[p][v]);
    }
  }
}

// Adds the products of all rows and the inputs of a block, from `input` to `end`; `packed` goes on.
template <size_t kRows, size_t kPairs, size_t kVectors>
[[gnu::always_inline]] inline void AddBlock(const PairedRows<kRows>& rows, size_t input, size_t end,
                                            const std::byte*& packed,
                                            int32x4_t (&sums)[kPairs][kVectors]) {
  PairOfRows activations[kPairs];
  if (end - input == kActivationBlock) {
#pragma GCC unroll 2
    for (; input != end; input += kStepInputs, packed += 2 * kGroupBytes) {
      rows.Load(input, activations);
      AddGroup<&PairOfRows::low>(packed, activations, sums);
      AddGroup<&PairOfRows::high>(packed + kGroupBytes, activations, sums);
    }
    return;
  }
  // Behind the last input, the weights are 0.
  for (; input < end; input += kMatrixInputs, packed += kGroupBytes) {
    rows.Load(input, activations);
    AddGroup<&PairOfRows::low>(packed, activations, sums);
  }
}

// Adds the sums of a block of activations times the rows' scales.
template <size_t kRows, size_t kVectors, size_t kPairs>
[[gnu::always_inline]] inline void AddScaled(const int32x4_t (&block_sums)[kPairs][kVectors],
                                             const float* const (&row_scales)[kRows], size_t block,
                                             MatrixSums<kRows, kVectors>& sums) {
#pragma GCC unroll 2
  for (size_t p = 0; p < kPairs; ++p) {
    const float32x4_t row_scale = ScalesOfPair(row_scales, p, block);
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      if constexpr (kRows == 1) {
        if (v % 2 == 1) continue;
        const int32x4_t block_sum = SumsOfRow(block_sums[0][v], block_sums[0][v + 1], false);
        sums[0][v / 2] = vfmaq_f32(sums[0][v / 2], vcvtq_f32_s32(block_sum), row_scale);
      } else {
        sums[p][v] = vfmaq_f32(sums[p][v], vcvtq_f32_s32(block_sums[p][v]), row_scale);
      }
    }
  }
}

// Multiplies all rows by `kVectors` vectors of 2 outputs, from vector `first` of the tile on.
struct Int8Part {
  template <size_t kRows, size_t kVectors>
  [[gnu::always_inline]] static void Multiply(const TileProduct& product, size_t first) {
    constexpr size_t kPairs = PairedRows<kRows>::kPairs;
    const PairedRows<kRows> rows(product.rows);
    const float* row_scales[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) row_scales[r] = product.Scales(r);
    MatrixSums<kRows, kVectors> sums;
    Clear(sums);
    const std::byte* packed = product.tile + product.tiles.blocks_offset() + 16 * first;
    const size_t num_inputs = product.tiles.input_channels;
    for (size_t input = 0; input < num_inputs; input += kActivationBlock) {
      int32x4_t block_sums[kPairs][kVectors];
      Clear(block_sums);
      AddBlock(rows, input, std::min(input + kActivationBlock, num_inputs), packed, block_sums);
      AddScaled<kRows>(block_sums, row_scales, input / kActivationBlock, sums);
    }
    float32x4_t results[kRows][kVectors / 2];
    ToRows<kRows, kVectors>(sums, results);
    StoreScaled(product, first / 2, reinterpret_cast<const float*>(packed - 16 * first), results);
  }
};

}  // namespace

const TileKernel* Qc8wKernelForNeonI8mm() {
  return NeonMatrixKernel<MatrixRows<Int8Part>, kMaxRows>();
}

}  // namespace cria::ops
