// int8 products for Arm processors with dot products of bytes (SDOT). XNNPACK's kernels for one row
// and for several round in different orders there, so that a row's result would depend on the
// number of rows.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

constexpr size_t kGroupInputs = 4;
constexpr size_t kGroupBytes = kGroupInputs * kNeonOutputs;
// Their sums and activations take 30 of 32 registers.
constexpr size_t kMaxRows = 6;
// One register of activations.
constexpr size_t kStepInputs = 16;

using Sums32 = int32x4_t[kNeonVectors];

// Adds the products of all rows and one group of inputs: number kGroup of the activations.
template <size_t kGroup, size_t kRows>
[[gnu::always_inline]] inline void AddGroup(const std::byte* packed,
                                            const int8x16_t (&activations)[kRows],
                                            Sums32 (&sums)[kRows]) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kNeonVectors; ++v) {
    const int8x16_t weights = vld1q_s8(reinterpret_cast<const int8_t*>(packed) + 16 * v);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) AddDot<kGroup>(weights, activations[r], sums[r][v]);
  }
}

template <size_t kRows>
[[gnu::always_inline]] inline void StoreScaled(const TileProduct& product, const float* scales,
                                               const Sums32 (&sums)[kRows]) {
  const RowQuantization* rows = product.rows.quantizations;
  float32x4_t scale[kNeonVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kNeonVectors; ++v) scale[v] = vld1q_f32(scales + 4 * v);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    float32x4_t results[kNeonVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonVectors; ++v) {
      const float32x4_t scaled = vmulq_n_f32(vcvtq_f32_s32(sums[r][v]), rows[r].scale);
      results[v] = vmulq_f32(scaled, scale[v]);
    }
    StoreVectors(product, r, 0, results);
  }
}

template <size_t kRows>
void MultiplyInt8Rows(const TileProduct& product) {
  const auto* minus_weights = reinterpret_cast<const int32_t*>(product.tile);
  const int8_t* values[kRows];
  Sums32 sums[kRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    values[r] = product.rows.values + r * product.rows.stride;
    const int32_t zero_point = product.rows.quantizations[r].zero_point;
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonVectors; ++v) {
      sums[r][v] = vmulq_n_s32(vld1q_s32(minus_weights + 4 * v), zero_point);
    }
  }
  const std::byte* packed = product.tile + product.tiles.blocks_offset();
  const size_t num_inputs = product.tiles.input_channels;
  int8x16_t activations[kRows];
  size_t input = 0;
  for (; input + kStepInputs <= num_inputs; input += kStepInputs) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(values[r], input);
    AddGroup<0>(packed, activations, sums);
    AddGroup<1>(packed + kGroupBytes, activations, sums);
    AddGroup<2>(packed + 2 * kGroupBytes, activations, sums);
    AddGroup<3>(packed + 3 * kGroupBytes, activations, sums);
    packed += 4 * kGroupBytes;
  }
  // Behind the last input, the weights are 0.
  for (; input < num_inputs; input += kGroupInputs, packed += kGroupBytes) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(values[r], input);
    AddGroup<0>(packed, activations, sums);
  }
  StoreScaled(product, reinterpret_cast<const float*>(packed), sums);
}

struct Int8Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyInt8Rows<kRows>(product);
  }
};

}  // namespace

const TileKernel* Qc8wKernelForNeonDot() {
  return NeonDotKernel<Int8Rows, kGroupInputs, kMaxRows>();
}

}  // namespace cria::ops
