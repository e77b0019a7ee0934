#include "weights/block_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "weights/block_reference.h"
#include "weights/random_blocks.h"

namespace cria {
namespace {

// Halves of all signs and sizes, also subnormal ones.
uint16_t FiniteHalf(std::mt19937& random) {
  uint16_t half = 0;
  do half = static_cast<uint16_t>(random());
  while ((half & 0x7c00) == 0x7c00);
  return half;
}

std::vector<std::byte> RandomBlocks(const BlockFormat& format, size_t num_blocks,
                                    std::mt19937& random) {
  return support::RandomBlocks(format, num_blocks, random, FiniteHalf);
}

class BlockNumbersTest : public ::testing::TestWithParam<BlockFormat> {};

TEST_P(BlockNumbersTest, AreTheReferenceBitForBit) {
  const BlockFormat& format = GetParam();
  std::mt19937 random(7);
  // Unaligned, as blocks of 18 bytes are.
  std::string raw = "x";
  std::vector<float> expected;
  for (int i = 0; i < 100; ++i) {
    const std::vector<std::byte> block = RandomBlocks(format, 1, random);
    const std::string bytes(reinterpret_cast<const char*>(block.data()), block.size());
    raw += bytes;
    std::ranges::copy(support::NaiveBlock(format, bytes), std::back_inserter(expected));
  }
  std::vector<float> values(expected.size());
  DequantizeBlocks(format, reinterpret_cast<const std::byte*>(raw.data() + 1), values);
  EXPECT_EQ(values, expected);
}

TEST_P(BlockNumbersTest, AreInTheirRanges) {
  const BlockFormat& format = GetParam();
  std::mt19937 random(8);
  for (int i = 0; i < 100; ++i) {
    BlockNumbers numbers;
    ReadBlock(format, RandomBlocks(format, 1, random).data(), numbers);
    for (size_t j = 0; j < format.inputs; ++j) {
      ASSERT_LT(numbers.codes[j], 1u << format.code_bits);
    }
    for (size_t group = 0; group < format.groups(); ++group) {
      if (format.group_scales == GroupScales::kNone) {
        ASSERT_EQ(numbers.group_scales[group], 1);
      } else if (format.group_scales == GroupScales::kNibbles) {
        ASSERT_TRUE(numbers.group_scales[group] >= 0 && numbers.group_scales[group] < 16);
        ASSERT_LT(numbers.group_minimums[group], 16);
      }
    }
    EXPECT_TRUE(format.has_minimum || numbers.minimum == 0);
  }
}

TEST_P(BlockNumbersTest, NeedNotBeAllOfTheLastBlock) {
  const BlockFormat& format = GetParam();
  std::mt19937 random(9);
  const std::vector<std::byte> blocks = RandomBlocks(format, 2, random);
  std::vector<float> all(2 * format.inputs);
  DequantizeBlocks(format, blocks.data(), all);
  std::vector<float> some(all.size(), 7.0f);
  DequantizeBlocks(format, blocks.data(), std::span(some).first(format.inputs + 5));
  EXPECT_TRUE(std::equal(some.begin(), some.begin() + format.inputs + 5, all.begin()));
  EXPECT_EQ(some[format.inputs + 5], 7.0f);
}

TEST(BlockFormatTest, TakesTheBytesOfGgml) {
  for (const BlockFormat& format : kBlockFormats) {
    if (!IsGgmlFormat(format.scheme)) continue;
    const auto known =
        std::ranges::find(support::GgmlBlocks(), format.name, &support::GgmlBlock::name);
    EXPECT_EQ(format.inputs, known->elements);
    EXPECT_EQ(format.bytes, known->bytes);
  }
}

TEST(BlockFormatTest, Mxfp4HasPowersOfTwoOfAnySize) {
  const BlockFormat& format = *FindBlockFormat(Scheme::kMxfp4);
  for (int exponent = 0; exponent < 256; ++exponent) {
    std::string block(format.bytes, '\x73');  // 1.5 and 6
    block[0] = static_cast<char>(exponent);
    std::vector<float> values(format.inputs);
    DequantizeBlocks(format, reinterpret_cast<const std::byte*>(block.data()), values);
    if (exponent == 255) {
      EXPECT_FALSE(std::isfinite(values.front()));
    } else if (exponent < 2) {
      EXPECT_EQ(values, std::vector<float>(format.inputs)) << "a denormal scale";
    } else {
      EXPECT_EQ(values.front(), std::ldexp(1.5f, exponent - 127)) << exponent;
      EXPECT_EQ(values.back(), std::ldexp(6.0f, exponent - 127)) << exponent;
    }
  }
}

TEST(BlockFormatTest, IsFoundByItsScheme) {
  for (const BlockFormat& format : kBlockFormats) {
    EXPECT_EQ(FindBlockFormat(format.scheme), &format);
    EXPECT_EQ(SchemeName(format.scheme), format.name);
  }
  EXPECT_EQ(FindBlockFormat(Scheme::kF32), nullptr);
  EXPECT_EQ(FindBlockFormat(Scheme::kQb4w), nullptr);
  EXPECT_EQ(FindBlockFormat(static_cast<Scheme>(kNumSchemes)), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, BlockNumbersTest, ::testing::ValuesIn(kBlockFormats),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace cria
