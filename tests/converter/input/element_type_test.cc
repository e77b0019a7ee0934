#include "converter/input/element_type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "weights/ggml_reference.h"

namespace cria {
namespace {

TEST(ElementTypeTest, BlocksAreThoseOfTheirFormats) {
  size_t num_formats = 0;
  for (int i = 0; i < kNumElementTypes; ++i) {
    const auto type = static_cast<ElementType>(i);
    const BlockFormat* const format = BlockFormatOf(type);
    if (format == nullptr) continue;
    ++num_formats;
    EXPECT_EQ(format->name, ElementTypeName(type));
    EXPECT_EQ(BlockOf(type).elements, format->inputs);
    EXPECT_EQ(BlockOf(type).bytes, format->bytes);
  }
  EXPECT_EQ(num_formats, static_cast<size_t>(std::ranges::count_if(kBlockFormats, IsGgmlFormat,
                                                                   &BlockFormat::scheme)));
}

TEST(ElementTypeTest, SingleNumbersAreConverted) {
  const std::array<float, 2> floats = {1.5f, -0.25f};
  std::array<float, 2> values = {};
  Dequantize(ElementType::kF32, reinterpret_cast<const std::byte*>(floats.data()), values);
  EXPECT_EQ(values, floats);
  const std::array<uint16_t, 2> halves = {0x3e00, 0xb400};
  Dequantize(ElementType::kF16, reinterpret_cast<const std::byte*>(halves.data()), values);
  EXPECT_EQ(values, floats);
  const std::array<uint16_t, 2> bf16 = {0x3fc0, 0xbe80};
  Dequantize(ElementType::kBf16, reinterpret_cast<const std::byte*>(bf16.data()), values);
  EXPECT_EQ(values, floats);
}

TEST(ElementTypeTest, BlocksAreDequantized) {
  const support::GgmlBlock& block = support::GgmlBlocks().front();
  std::string raw(block.bytes, '\x21');
  raw[1] = 0x3c;  // A scale near 1.
  std::vector<float> values(block.elements);
  Dequantize(ElementType::kQ4_0, reinterpret_cast<const std::byte*>(raw.data()), values);
  EXPECT_EQ(values, support::NaiveGgml(raw).Values(block.name));
}

}  // namespace
}  // namespace cria
