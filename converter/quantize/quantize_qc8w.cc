#include "converter/quantize/quantize_qc8w.h"

namespace cria {

ScaleFit QuantizeQc8wRow(std::span<const float> row, std::span<float> scratch,
                         std::span<int8_t> codes) {
  const ScaleFit fit = SearchScale(row, kQc8wRule, scratch);
  const float inverse_scale = 1.0f / fit.scale;
  for (size_t i = 0; i < row.size(); ++i) {
    codes[i] =
        static_cast<int8_t>(static_cast<int32_t>(CodeOf(row[i], inverse_scale, kQc8wRule.range)));
  }
  return fit;
}

}  // namespace cria
