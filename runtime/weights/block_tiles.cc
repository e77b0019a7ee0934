#include "weights/block_tiles.h"

#include <array>
#include <cstring>

#include "core/numeric.h"
#include "weights/block_numbers.h"

namespace cria {
namespace {

constexpr size_t kOutputs = BlockTiles::kOutputs;
constexpr size_t kLine = BlockTiles::kLineBytes;

// 32 codes of a row: each number has the four of a line, as its bytes.
using LinesOfRow = std::array<uint32_t, BlockTiles::kStepInputs / 4>;

// Stores `bits` bits of each code, from bit `first` on, in the row's places of a plane.
template <unsigned bits>
void PackPlane(const LinesOfRow& lines, unsigned first, uint8_t* place) {
  constexpr uint32_t kMask = ((1u << bits) - 1) * 0x01010101u;
  constexpr size_t kLinesPerByte = 8 / bits;
  for (size_t line = 0; line < lines.size(); line += kLinesPerByte, place += kLine) {
    uint32_t packed = 0;
    for (size_t i = 0; i < kLinesPerByte; ++i) {
      packed |= (lines[line + i] >> first & kMask) << (i * bits);
    }
    std::memcpy(place, &packed, sizeof packed);
  }
}

// Stores the codes of 32 inputs of row `row` of a tile in their planes.
void PackStep(const BlockFormat& format, const uint8_t* codes, size_t row, uint8_t* step) {
  LinesOfRow lines;
  std::memcpy(lines.data(), codes, sizeof lines);
  uint8_t* place = step + row * 4;
  for (unsigned done = 0; done < format.code_bits;) {
    const unsigned bits = PlaneBits(format.code_bits - done);
    switch (bits) {
      case 8:
        PackPlane<8>(lines, done, place);
        break;
      case 4:
        PackPlane<4>(lines, done, place);
        break;
      case 2:
        PackPlane<2>(lines, done, place);
        break;
      default:
        PackPlane<1>(lines, done, place);
    }
    place += bits * kLine;
    done += bits;
  }
}

void PackScales(const BlockFormat& format, const BlockNumbers& numbers, size_t row,
                std::byte* block) {
  auto* next = reinterpret_cast<uint8_t*>(block);
  const auto store_half = [&](uint16_t half) {
    std::memcpy(next + row * sizeof(half), &half, sizeof(half));
    next += kOutputs * sizeof(half);
  };
  if (format.scale_type == BlockScaleType::kE8m0) {
    next[row] = static_cast<uint8_t>(numbers.scale >> kBf16MantissaBits);
    next += kOutputs;
  } else {
    store_half(numbers.scale);
  }
  if (format.has_minimum) store_half(numbers.minimum);
  if (format.group_scales == GroupScales::kNone) return;
  const bool are_nibbles = format.group_scales == GroupScales::kNibbles;
  for (size_t group = 0; group < format.groups(); ++group, next += kOutputs) {
    next[row] = static_cast<uint8_t>(numbers.group_scales[group]);
    if (are_nibbles) next[row] |= static_cast<uint8_t>(numbers.group_minimums[group] << 4);
  }
  if (are_nibbles || !format.has_minimum) return;
  for (size_t group = 0; group < format.groups(); ++group, next += kOutputs) {
    next[row] = numbers.group_minimums[group];
  }
}

}  // namespace

size_t TiledBytes(const BlockFormat& format, size_t rows, size_t inputs) {
  return DivideRoundingUp(rows, kOutputs) * BlockTiles::TileBytes(format, inputs);
}

void PackTiles(const BlockFormat& format, const std::byte* stored, size_t rows, size_t inputs,
               std::span<std::byte> tiles) {
  BlockNumbers numbers;
  const size_t tile_bytes = BlockTiles::TileBytes(format, inputs);
  for (size_t row = 0; row < rows; ++row) {
    std::byte* block = tiles.data() + row / kOutputs * tile_bytes;
    for (size_t input = 0; input < inputs; input += format.inputs) {
      ReadBlock(format, stored, numbers);
      stored += format.bytes;
      PackScales(format, numbers, row % kOutputs, block);
      auto* const codes = reinterpret_cast<uint8_t*>(block + BlockTiles::CodesOffset(format));
      for (size_t step = 0; step < format.inputs / BlockTiles::kStepInputs; ++step) {
        PackStep(format, numbers.codes + step * BlockTiles::kStepInputs, row % kOutputs,
                 codes + step * BlockTiles::StepBytes(format));
      }
      block += BlockTiles::BlockBytes(format);
    }
  }
}

}  // namespace cria
