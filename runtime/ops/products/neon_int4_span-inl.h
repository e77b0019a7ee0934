#pragma once

#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {

// Multiplies up to kMaxManyRows rows by a tile of int4 weights (PackedTiles), part by part: what
// fits the first-level cache is unpacked once for all rows. Each block of activations is a step.
//   Part::UnpackStep(packed, weights)   unpacks the weights of a step, int8 [32][16 outputs]
//   Part::Add(product, weights, scales, input, steps, sums)   adds the products of the steps from
//                                       `input` on; `scales` are [steps][outputs]
//   Part::kFactor                       what results are multiplied by
template <class Part>
void MultiplyManyInt4Rows(const TileProduct& product) {
  PublishActivations();
  constexpr size_t kSpanSteps = 16;
  constexpr size_t kStepBytes = kActivationBlock * kNeonOutputs;
  const PackedTiles& tiles = product.tiles;
  const size_t num_steps = tiles.input_channels / kActivationBlock;
  alignas(64) int8_t weights[kSpanSteps * kStepBytes];
  alignas(64) float scales[kSpanSteps * kNeonOutputs];
  alignas(64) float sums[kMaxManyRows][kNeonOutputs];
  std::fill_n(sums[0], product.rows.num_rows * kNeonOutputs, 0.0f);
  const std::byte* packed = product.tile + tiles.blocks_offset();
  const std::byte* packed_scales = packed + tiles.scales_offset();
  for (size_t first = 0; first < num_steps; first += kSpanSteps) {
    const size_t steps = std::min(kSpanSteps, num_steps - first);
    for (size_t step = 0; step < steps; ++step) {
      Part::UnpackStep(packed, weights + step * kStepBytes);
      packed += kStepBytes / 2;
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonVectors; ++v) {
        const auto* const halves = reinterpret_cast<const uint16_t*>(packed_scales) + 4 * v;
        vst1q_f32(scales + step * kNeonOutputs + 4 * v, WidenBf16(vld1_u16(halves)));
      }
      if (packed == packed_scales) {  // The block ends.
        packed += kNeonOutputs * sizeof(uint16_t);
        packed_scales += tiles.block_bytes();
      }
    }
    Part::Add(product, weights, scales, first * kActivationBlock, steps, sums);
  }
  for (size_t r = 0; r < product.rows.num_rows; ++r) {
    float32x4_t results[1][kNeonVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonVectors; ++v) results[0][v] = vld1q_f32(sums[r] + 4 * v);
    TileProduct row = product;
    row.output += r * product.output_stride;
    StoreResults<Part::kFactor>(row, 0, results);
  }
}

}  // namespace cria::ops
