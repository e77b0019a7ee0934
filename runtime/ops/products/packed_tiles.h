#pragma once

#include <cstddef>
#include <cstdint>

namespace cria::ops {

// int4 weights as XNNPACK packs kQb4w: consecutive tiles of `outputs` outputs, the last one padded.
// A tile is:
//   float[outputs]    minus the sum of each output's weights, times their scales
//   for each block of inputs:
//     uint8[block_size / (2 k)][outputs][k], where k is group_inputs: of output o, inputs
//                     2 k i + 0..k-1 in the low nibbles and 2 k i + k..2k-1 in the high ones, in
//                     two's complement
//     bfloat16[outputs] a sixteenth of the block's scales
//   float[outputs]    biases, which are 0
//
// XNNPACK's kernels for this processor decide `outputs` and `group_inputs`; it calls a layout of 16
// outputs and groups of 8 inputs "16c8".
struct PackedTiles {
  size_t outputs = 0;
  size_t group_inputs = 0;    // Even numbers of groups fill a block.
  size_t input_channels = 0;  // A multiple of block_size.
  size_t block_size = 0;

  // Offset of the first block in a tile.
  size_t blocks_offset() const { return outputs * sizeof(float); }
  // Offset of a block's scales in the block.
  size_t scales_offset() const { return block_size / 2 * outputs; }
  size_t block_bytes() const { return scales_offset() + outputs * sizeof(uint16_t); }
  size_t tile_bytes() const {
    return input_channels / block_size * block_bytes() + 2 * outputs * sizeof(float);
  }
};

}  // namespace cria::ops
