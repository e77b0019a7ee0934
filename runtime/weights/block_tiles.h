#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/block_format.h"

namespace cria {

// Rows of a block format as products read them, the same on every processor: consecutive tiles of
// kOutputs rows, the last one padded with zeros. A tile has, for each stored block of its rows:
//   uint16[16]          scales, f16 or bf16; or uint8[16], the exponents of their floats
//   uint16[16]          minimums, likewise, if the format has them
//   int8[groups][16]    scales of the groups, if they are bytes
//   uint8[groups][16]   minimums of the groups, likewise
//   uint8[groups][16]   or both, if they are nibbles: the scale in the low one
//   for each 32 inputs: the codes
// The codes of 32 inputs are 8 lines of 64 bytes. Byte 4 o + k of line g has the code of row o for
// input 4 g + k. Codes of fewer bits than 8 are stored as planes, one after another, of the lowest
// bits first: 4 lines of nibbles if there are 4 bits or more, 2 lines of pairs of bits if two more
// are left, and 1 line of single bits if one is left. A byte of a plane has those of consecutive
// lines, the first in its lowest bits.
struct BlockTiles {
  static constexpr size_t kOutputs = 16;
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kStepInputs = 32;

  static constexpr size_t StepBytes(const BlockFormat& format) {
    return format.code_bits * kLineBytes;
  }
  // Offset of the first codes in a block of a tile.
  static constexpr size_t CodesOffset(const BlockFormat& format) {
    const size_t arrays = format.has_minimum ? 2 : 1;
    const size_t scales = arrays * kOutputs * format.scale_bytes();
    switch (format.group_scales) {
      case GroupScales::kNone:
        break;
      case GroupScales::kBytes:
        return scales + format.groups() * arrays * kOutputs;
      case GroupScales::kNibbles:
        return scales + format.groups() * kOutputs;
    }
    return scales;
  }
  static constexpr size_t BlockBytes(const BlockFormat& format) {
    return CodesOffset(format) + format.inputs / kStepInputs * StepBytes(format);
  }
  // `inputs` is a multiple of the block's.
  static constexpr size_t TileBytes(const BlockFormat& format, size_t inputs) {
    return inputs / format.inputs * BlockBytes(format);
  }
};

// Bytes of the tiles of so many rows.
size_t TiledBytes(const BlockFormat& format, size_t rows, size_t inputs);

// Packs `rows` rows of stored blocks into tiles; `tiles` is TiledBytes of zeros.
void PackTiles(const BlockFormat& format, const std::byte* stored, size_t rows, size_t inputs,
               std::span<std::byte> tiles);

}  // namespace cria
