#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numeric.h"
#include "weights/block_tiles.h"

namespace cria::ops {

// Weights as XNNPACK packs them: consecutive tiles of `outputs` outputs, the last one padded. With
// k as group_inputs, a tile of int4 weights (kQb4w) is:
//   float[outputs]    minus the sum of each output's weights, times their scales
//   for each block of inputs:
//     uint8[block_size / (2 k)][outputs][k]  of output o, inputs 2 k i + 0..k-1 in the low nibbles
//                     and 2 k i + k..2k-1 in the high ones, in two's complement
//     bfloat16[outputs] a sixteenth of the block's scales
//   float[outputs]    biases, which are 0
//
// A tile of int8 weights (kQc8w), which have no blocks, is:
//   int32[outputs]    minus the sum of each output's weights
//   int8[input_channels / k, rounded up][outputs][k]  0 behind the last input
//   float[outputs]    scales
//   float[outputs]    biases, which are 0
//
// XNNPACK's kernels for this processor decide `outputs` and `group_inputs`; it calls a layout of 16
// outputs and groups of 8 inputs "16c8".
//
// Matrices of a block format have BlockTiles instead, which are the same on every processor.
struct PackedTiles {
  size_t outputs = 0;
  size_t group_inputs = 0;    // Even numbers of groups fill a block.
  size_t input_channels = 0;  // A multiple of block_size.
  size_t block_size = 0;      // 0 for int8 weights.
  // Not null for BlockTiles. All results are then multiplied by `factor`.
  const BlockFormat* format = nullptr;
  float factor = 1.0f;

  bool is_int8() const { return format == nullptr && block_size == 0; }
  // Offset of the first block, or of int8 weights, in a tile.
  size_t blocks_offset() const { return outputs * sizeof(float); }
  // Offset of a block's scales in the block.
  size_t scales_offset() const { return block_size / 2 * outputs; }
  size_t block_bytes() const { return scales_offset() + outputs * sizeof(uint16_t); }
  // Bytes of a tile's int8 weights.
  size_t int8_bytes() const {
    return DivideRoundingUp(input_channels, group_inputs) * group_inputs * outputs;
  }
  size_t tile_bytes() const {
    if (format != nullptr) return BlockTiles::TileBytes(*format, input_channels);
    return is_int8() ? int8_bytes() + 3 * outputs * sizeof(float)
                     : input_channels / block_size * block_bytes() + 2 * outputs * sizeof(float);
  }
};

}  // namespace cria::ops
