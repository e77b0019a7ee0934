#include "converter/input/element_type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "converter/input/ggml_reference.h"

namespace cria {
namespace {

using support::GgmlBlock;

// Random bytes, except for the scales, which are halves of all signs and sizes, also subnormal
// ones.
std::string RandomBlock(const GgmlBlock& block, std::mt19937& random) {
  std::string bytes(block.bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (const size_t scale : block.scales) {
    uint16_t half = 0;
    do half = static_cast<uint16_t>(random());
    while ((half & 0x7c00) == 0x7c00);
    std::copy_n(reinterpret_cast<const char*>(&half), 2, bytes.begin() + static_cast<long>(scale));
  }
  return bytes;
}

class QuantizedTypeTest : public ::testing::TestWithParam<size_t> {
 protected:
  const GgmlBlock& block() const { return support::GgmlBlocks()[GetParam()]; }
  ElementType type() const {
    for (int i = 0; i < kNumElementTypes; ++i) {
      if (ElementTypeName(static_cast<ElementType>(i)) == block().name) {
        return static_cast<ElementType>(i);
      }
    }
    ADD_FAILURE() << block().name;
    return ElementType::kF32;
  }
};

TEST_P(QuantizedTypeTest, IsTheReferenceBitForBit) {
  EXPECT_EQ(BlockOf(type()).elements, block().elements);
  EXPECT_EQ(BlockOf(type()).bytes, block().bytes);
  std::mt19937 random(7);
  std::string raw;
  std::vector<float> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = RandomBlock(block(), random);
    raw += bytes;
    std::ranges::copy(support::NaiveGgml(bytes).Values(block().name), std::back_inserter(expected));
  }
  // Unaligned, as blocks of 18 bytes are.
  raw.insert(0, 1, 'x');
  std::vector<float> values(expected.size());
  Dequantize(type(), reinterpret_cast<const std::byte*>(raw.data() + 1), values);
  EXPECT_EQ(values, expected);
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedTypeTest,
                         ::testing::Range<size_t>(0, support::GgmlBlocks().size()),
                         [](const auto& one) {
                           return std::string(support::GgmlBlocks()[one.param].name);
                         });

}  // namespace
}  // namespace cria
