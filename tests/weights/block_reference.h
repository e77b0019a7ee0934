#pragma once

// A second implementation that dequantizes blocks, for comparison.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric.h"
#include "weights/block_format.h"
#include "weights/ggml_reference.h"

namespace cria::support {

// Where a stored block has its scale, and its minimum if there is one.
inline std::vector<size_t> ScaleOffsets(const BlockFormat& format) {
  const auto ggml = std::ranges::find(GgmlBlocks(), format.name, &GgmlBlock::name);
  return ggml == GgmlBlocks().end() ? std::vector<size_t>{0, 2} : ggml->scales;
}

// A block of a scale, a minimum and planes of codes, bit by bit.
inline std::vector<float> NaivePlanes(const BlockFormat& format, const std::string& block) {
  const auto bf16 = [&](size_t offset) {
    const auto low = static_cast<uint8_t>(block[offset]);
    const auto high = static_cast<uint8_t>(block[offset + 1]);
    return Bf16ToFloat(static_cast<uint16_t>(low | high << 8));
  };
  // The plane of a code's bit, the bits of a plane, and the bit's place among them.
  struct Place {
    size_t offset;
    size_t bits;
    size_t index;
  };
  const auto place_of = [&](size_t bit) -> Place {
    const size_t fours = format.code_bits >= 4 ? 1 : 0;
    if (bit < 4 * fours) return {4, 4, bit};
    const size_t behind_fours = 4 + fours * format.inputs / 2;
    const size_t twos = (format.code_bits - 4 * fours) / 2;
    if (bit < 4 * fours + 2 * twos) return {behind_fours, 2, bit - 4 * fours};
    return {behind_fours + twos * format.inputs / 4, 1, 0};
  };
  std::vector<float> values;
  for (size_t i = 0; i < format.inputs; ++i) {
    int code = 0;
    for (size_t bit = 0; bit < format.code_bits; ++bit) {
      const auto [offset, bits, index] = place_of(bit);
      const size_t plane_bytes = format.inputs * bits / 8;
      const auto byte = static_cast<uint8_t>(block[offset + i % plane_bytes]);
      code += (byte >> (i / plane_bytes * bits + index) & 1) << bit;
    }
    values.push_back(bf16(0) * static_cast<float>(code) - bf16(2));
  }
  return values;
}

inline std::vector<float> NaiveBlock(const BlockFormat& format, const std::string& block) {
  const auto ggml = std::ranges::find(GgmlBlocks(), format.name, &GgmlBlock::name);
  return ggml == GgmlBlocks().end() ? NaivePlanes(format, block)
                                    : NaiveGgml(block).Values(format.name);
}

}  // namespace cria::support
