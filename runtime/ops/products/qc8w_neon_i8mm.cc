// int8 products for Arm processors with products of matrices of bytes (SMMLA).

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_matrices-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

constexpr size_t kGroupBytes = kMatrixInputs * kNeonOutputs;
// One register of activations.
constexpr size_t kStepInputs = 2 * kMatrixInputs;
// The sums of two pairs take 16 of 32 registers.
constexpr size_t kMaxRows = 4;

template <size_t kPairs>
using Sums32 = int32x4_t[kPairs][kMatrixVectors];

// Adds the products of all rows and one group of inputs.
template <int8x16_t PairOfRows::* kGroup, size_t kPairs>
[[gnu::always_inline]] inline void AddGroup(const std::byte* packed,
                                            const PairOfRows (&activations)[kPairs],
                                            Sums32<kPairs>& sums) {
#pragma GCC unroll 8
  for (size_t v = 0; v < kMatrixVectors; ++v) {
    const int8x16_t weights = vld1q_s8(reinterpret_cast<const int8_t*>(packed) + 16 * v);
#pragma GCC unroll 4
    for (size_t p = 0; p < kPairs; ++p) {
      AddMatrixProduct(activations[p].*kGroup, weights, sums[p][v]);
    }
  }
}

template <size_t kRows, size_t kPairs>
[[gnu::always_inline]] inline void StoreScaled(const TileProduct& product, const float* scales,
                                               const Sums32<kPairs>& sums) {
  const auto* minus_weights = reinterpret_cast<const int32_t*>(product.tile);
  const RowQuantization* rows = product.rows.quantizations;
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    float32x4_t results[kNeonVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonVectors; ++v) {
      const int32x4_t products = SumsOfRow(sums[r / 2][2 * v], sums[r / 2][2 * v + 1], r % 2 == 1);
      const int32x4_t sum =
          vmlaq_n_s32(products, vld1q_s32(minus_weights + 4 * v), rows[r].zero_point);
      results[v] =
          vmulq_f32(vmulq_n_f32(vcvtq_f32_s32(sum), rows[r].scale), vld1q_f32(scales + 4 * v));
    }
    StoreVectors(product, r, 0, results);
  }
}

template <size_t kRows>
void MultiplyInt8Rows(const TileProduct& product) {
  constexpr size_t kPairs = PairedRows<kRows>::kPairs;
  const PairedRows<kRows> rows(product.rows);
  Sums32<kPairs> sums;
#pragma GCC unroll 4
  for (auto& pair : sums) {
#pragma GCC unroll 8
    for (auto& sum : pair) sum = vdupq_n_s32(0);
  }
  const std::byte* packed = product.tile + product.tiles.blocks_offset();
  const size_t num_inputs = product.tiles.input_channels;
  PairOfRows activations[kPairs];
  const size_t whole_steps = num_inputs - num_inputs % (2 * kStepInputs);
  size_t input = 0;
  while (input != whole_steps) {
#pragma GCC unroll 2
    for (size_t step = 0; step < 2; ++step, input += kStepInputs, packed += 2 * kGroupBytes) {
      rows.Load(input, activations);
      AddGroup<&PairOfRows::low>(packed, activations, sums);
      AddGroup<&PairOfRows::high>(packed + kGroupBytes, activations, sums);
    }
  }
  // Behind the last input, the weights are 0.
  for (; input < num_inputs; input += kMatrixInputs, packed += kGroupBytes) {
    rows.Load(input, activations);
    AddGroup<&PairOfRows::low>(packed, activations, sums);
  }
  StoreScaled<kRows>(product, reinterpret_cast<const float*>(packed), sums);
}

struct Int8Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyInt8Rows<kRows>(product);
  }
};

}  // namespace

const TileKernel* Qc8wKernelForNeonI8mm() { return NeonMatrixKernel<Int8Rows, kMaxRows>(); }

}  // namespace cria::ops
