#include "converter/quantize/quantize_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/numeric.h"

namespace cria {

void StoreBlock(const BlockFormat& format, std::span<const float> codes, float scale, float minimum,
                std::byte* stored) {
  const uint16_t halves[2] = {FloatToBf16(scale), FloatToBf16(minimum)};
  std::memcpy(stored, halves, sizeof halves);
  auto* plane = reinterpret_cast<uint8_t*>(stored) + sizeof halves;
  std::fill_n(plane, format.bytes - sizeof halves, uint8_t{0});
  for (unsigned done = 0; done < format.code_bits;) {
    const unsigned bits = PlaneBits(format.code_bits - done);
    const size_t bytes = format.inputs * bits / 8;
    const float* code = codes.data();
    for (unsigned shift = 0; shift < 8; shift += bits) {
      for (size_t i = 0; i < bytes; ++i) {
        const unsigned part = static_cast<unsigned>(*code++) >> done & ((1u << bits) - 1);
        plane[i] |= static_cast<uint8_t>(part << shift);
      }
    }
    plane += bytes;
    done += bits;
  }
}

double QuantizeBlocksOfRow(const BlockFormat& format, std::span<const float> row, size_t inputs,
                           std::span<std::byte> stored) {
  const ScaleRule rule = BlockRule(format);
  double squared_error = 0.0;
  std::array<float, kMaxBlockInputs> codes;
  for (size_t first = 0; first < row.size(); first += format.inputs) {
    const size_t count = std::min<size_t>(format.inputs, inputs - first);
    const ScaleFit fit = SearchScale(row.subspan(first, count), rule, {});
    const float inverse_scale = 1.0f / fit.scale;
    std::ranges::fill(codes, 0.0f);
    for (size_t i = 0; i < count; ++i) {
      codes[i] = CodeOf(row[first + i] + fit.minimum, inverse_scale, rule.range);
    }
    StoreBlock(format, codes, fit.scale, fit.minimum,
               stored.data() + first / format.inputs * format.bytes);
    squared_error += fit.squared_error;
  }
  return squared_error;
}

}  // namespace cria
