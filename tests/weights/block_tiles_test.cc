#include "weights/block_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "weights/block_numbers.h"
#include "weights/random_blocks.h"

namespace cria {
namespace {

// Reads tiles byte by byte, as the layout is described.
class Tiles {
 public:
  Tiles(const BlockFormat& format, std::vector<std::byte> bytes, size_t inputs)
      : format_(format), bytes_(std::move(bytes)), inputs_(inputs) {}

  float Weight(size_t row, size_t input) const {
    const size_t arrays = format_.has_minimum ? 2 : 1;
    const size_t lane = row % 16;
    const size_t block = row / 16 * BlockTiles::TileBytes(format_, inputs_) +
                         input / format_.inputs * BlockTiles::BlockBytes(format_);
    const size_t in_block = input % format_.inputs;
    const size_t group = in_block / format_.group_inputs;
    const size_t groups = block + arrays * 32;
    const bool is_exponent = format_.scale_type == BlockScaleType::kE8m0;
    float scale = is_exponent ? std::ldexp(1.0f, Byte(block + lane) - 127) : Half(block + 2 * lane);
    if (is_exponent && Byte(block + lane) == 0) scale = 0.0f;
    float minimum = format_.has_minimum ? Half(block + 32 + 2 * lane) : 0.0f;
    if (format_.group_scales == GroupScales::kBytes) {
      scale *= static_cast<float>(static_cast<int8_t>(Byte(groups + group * 16 + lane)));
      if (format_.has_minimum) {
        minimum *= static_cast<float>(Byte(groups + (format_.groups() + group) * 16 + lane));
      }
    } else if (format_.group_scales == GroupScales::kNibbles) {
      scale *= static_cast<float>(Byte(groups + group * 16 + lane) & 15);
      minimum *= static_cast<float>(Byte(groups + group * 16 + lane) >> 4);
    }
    const size_t step =
        block + BlockTiles::CodesOffset(format_) + in_block / 32 * BlockTiles::StepBytes(format_);
    const unsigned code = Code(step, in_block % 32 / 4, 4 * lane + in_block % 4);
    const float product = scale * static_cast<float>(Number(code));
    return format_.has_minimum ? product - minimum : product;
  }

 private:
  uint8_t Byte(size_t offset) const { return static_cast<uint8_t>(bytes_[offset]); }
  float Half(size_t offset) const {
    uint16_t half = 0;
    std::memcpy(&half, &bytes_[offset], sizeof half);
    return format_.scale_type == BlockScaleType::kBf16 ? Bf16ToFloat(half) : F16ToFloat(half);
  }
  unsigned Code(size_t step, size_t line, size_t place) const {
    switch (format_.code_bits) {
      case 8:
        return Byte(step + line * 64 + place);
      case 2:
        return Pair(step, line, place);
      case 3:
        return Pair(step, line, place) | Bit(step + 2 * 64, line, place) << 2;
      case 4:
        return Nibble(step, line, place);
      case 5:
        return Nibble(step, line, place) | Bit(step + 4 * 64, line, place) << 4;
      default:
        return Nibble(step, line, place) | Pair(step + 4 * 64, line, place) << 4;
    }
  }
  unsigned Nibble(size_t plane, size_t line, size_t place) const {
    return Byte(plane + line / 2 * 64 + place) >> (line % 2 * 4) & 15u;
  }
  unsigned Pair(size_t plane, size_t line, size_t place) const {
    return Byte(plane + line / 4 * 64 + place) >> (line % 4 * 2) & 3u;
  }
  unsigned Bit(size_t plane, size_t line, size_t place) const {
    return Byte(plane + place) >> line & 1u;
  }
  int Number(unsigned code) const {
    if (format_.codebook != Codebook::kNone) return NumbersOf(format_.codebook)[code];
    if (format_.code_bits == 8) return static_cast<int8_t>(code);
    return static_cast<int>(code) - format_.zero_point;
  }

  const BlockFormat& format_;
  std::vector<std::byte> bytes_;
  size_t inputs_;
};

class BlockTilesTest : public ::testing::TestWithParam<BlockFormat> {};

TEST_P(BlockTilesTest, HaveTheWeightsOfTheRows) {
  const BlockFormat& format = GetParam();
  std::mt19937 random(5);
  for (const size_t rows : {1, 16, 37}) {
    const size_t inputs = 3 * format.inputs;
    const std::vector<std::byte> stored = support::RandomBlocks(format, rows * 3, random);
    std::vector<std::byte> bytes(TiledBytes(format, rows, inputs));
    PackTiles(format, stored.data(), rows, inputs, bytes);
    std::vector<float> weights(rows * inputs);
    DequantizeBlocks(format, stored.data(), weights);
    const Tiles tiles(format, std::move(bytes), inputs);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t input = 0; input < inputs; ++input) {
        ASSERT_EQ(tiles.Weight(row, input), weights[row * inputs + input]) << row << ", " << input;
      }
    }
    for (size_t input = 0; input < inputs; ++input) {
      for (size_t row = rows; row % 16 != 0; ++row) {
        ASSERT_EQ(tiles.Weight(row, input), 0.0f) << "padding " << row << ", " << input;
      }
    }
  }
}

// The stored size, but for scales of six bits or fewer, which become bytes.
TEST_P(BlockTilesTest, TakeFewMoreBytesThanTheRows) {
  const BlockFormat& format = GetParam();
  const double ratio = static_cast<double>(BlockTiles::BlockBytes(format)) / (16.0 * format.bytes);
  EXPECT_GE(ratio, 1.0);
  EXPECT_LE(ratio, format.group_scales == GroupScales::kBytes ? 1.04 : 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, BlockTilesTest, ::testing::ValuesIn(kBlockFormats),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace cria
