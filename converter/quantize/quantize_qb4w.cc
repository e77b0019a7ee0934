#include "converter/quantize/quantize_qb4w.h"

#include "core/numeric.h"
#include "model/tensor_table.h"

namespace cria {
namespace {

uint8_t Nibble(float value, float inverse_scale) {
  const auto code = static_cast<int32_t>(CodeOf(value, inverse_scale, kQb4wRule.range));
  return static_cast<uint8_t>(code + kQb4wZeroPoint);
}

}  // namespace

double QuantizeQb4wRow(std::span<const float> row, size_t block_size, std::span<float> scratch,
                       std::span<uint8_t> nibbles, std::span<uint16_t> scales) {
  double squared_error = 0.0;
  for (size_t block_index = 0; block_index < scales.size(); ++block_index) {
    const size_t begin = block_index * block_size;
    const auto block = row.subspan(begin, block_size);
    const ScaleFit fit = SearchScale(block, kQb4wRule, scratch);
    const float inverse_scale = 1.0f / fit.scale;
    for (size_t i = 0; i < block_size; i += 2) {
      nibbles[(begin + i) / 2] = static_cast<uint8_t>(Nibble(block[i], inverse_scale) |
                                                      Nibble(block[i + 1], inverse_scale) << 4);
    }
    scales[block_index] = FloatToBf16(fit.scale);
    squared_error += fit.squared_error;
  }
  return squared_error;
}

}  // namespace cria
