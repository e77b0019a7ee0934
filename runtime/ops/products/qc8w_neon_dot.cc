// int8 products for Arm processors with dot products of bytes (SDOT). XNNPACK's kernels for one row
// and for several round in different orders there, so that a row's result would depend on the
// number of rows.

#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {
namespace {

constexpr size_t kGroupInputs = 4;
constexpr size_t kGroupBytes = kGroupInputs * kNeonOutputs;
// The sums of six rows for half a tile, as integers and as floats, take 24 of 32 registers.
constexpr size_t kMaxRows = 6;
constexpr size_t kMaxRowsOfWholeTile = 3;
// One register of activations.
constexpr size_t kStepInputs = 16;

// Adds the products of all rows and one group of inputs: number kGroup of the activations.
template <size_t kGroup, size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void AddGroup(const std::byte* packed,
                                            const int8x16_t (&activations)[kRows],
                                            int32x4_t (&sums)[kRows][kVectors]) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const int8x16_t weights = vld1q_s8(reinterpret_cast<const int8_t*>(packed) + 16 * v);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) AddDot<kGroup>(weights, activations[r], sums[r][v]);
  }
}

// Adds the products of all rows and the inputs of a block, from `input` to `end`; `packed` goes on.
template <size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void AddBlock(const int8_t* (&values)[kRows], size_t input,
                                            size_t end, const std::byte*& packed,
                                            int32x4_t (&sums)[kRows][kVectors]) {
  int8x16_t activations[kRows];
  if (end - input == kActivationBlock) {
#pragma GCC unroll 2
    for (; input != end; input += kStepInputs) {
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(values[r], input);
      AddGroup<0>(packed, activations, sums);
      AddGroup<1>(packed + kGroupBytes, activations, sums);
      AddGroup<2>(packed + 2 * kGroupBytes, activations, sums);
      AddGroup<3>(packed + 3 * kGroupBytes, activations, sums);
      packed += 4 * kGroupBytes;
    }
    return;
  }
  // Behind the last input, the weights are 0.
  for (; input < end; input += kGroupInputs, packed += kGroupBytes) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(values[r], input);
    AddGroup<0>(packed, activations, sums);
  }
}

// Multiplies all rows by `kVectors` vectors of 4 outputs, from vector `first` of the tile on.
struct Int8Part {
  template <size_t kRows, size_t kVectors>
  [[gnu::always_inline]] static void Multiply(const TileProduct& product, size_t first) {
    const int8_t* values[kRows];
    const float* row_scales[kRows];
    float32x4_t sums[kRows][kVectors];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      values[r] = product.Row(r);
      row_scales[r] = product.Scales(r);
    }
    Clear(sums);
    const std::byte* packed = product.tile + product.tiles.blocks_offset() + 16 * first;
    const size_t num_inputs = product.tiles.input_channels;
    for (size_t input = 0; input < num_inputs; input += kActivationBlock) {
      int32x4_t block_sums[kRows][kVectors];
      Clear(block_sums);
      AddBlock(values, input, std::min(input + kActivationBlock, num_inputs), packed, block_sums);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const float row_scale = row_scales[r][input / kActivationBlock];
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          sums[r][v] = vfmaq_n_f32(sums[r][v], vcvtq_f32_s32(block_sums[r][v]), row_scale);
        }
      }
    }
    StoreScaled(product, first, reinterpret_cast<const float*>(packed - 16 * first), sums);
  }
};

}  // namespace

const TileKernel* Qc8wKernelForNeonDot() {
  return NeonDotKernel<WholeTileOrHalves<Int8Part, kMaxRowsOfWholeTile>, kGroupInputs, kMaxRows>();
}

}  // namespace cria::ops
