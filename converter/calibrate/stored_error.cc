#include "converter/calibrate/stored_error.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "core/numeric.h"

namespace cria {

Result<Matrix> StoredError(const ThreadPool& threads, const Matrix& weights,
                           const PlannedTensor& tensor, const TensorLayout& layout) {
  std::vector<std::byte> data(layout.data_bytes());
  std::vector<std::byte> scales(layout.scale_bytes());
  if (tensor.encoded) {
    const EncodedTensor& encoded = *tensor.encoded;
    CRIA_RETURN_IF_ERROR(encoded.file->ReadAt(encoded.data_offset, data));
    CRIA_RETURN_IF_ERROR(encoded.file->ReadAt(encoded.scale_offset, scales));
  }
  constexpr size_t kQuantizedRows = 64;
  Matrix error(weights.rows(), weights.columns());
  threads.ParallelFor(DivideRoundingUp(weights.rows(), kQuantizedRows), [&](size_t group) {
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    const size_t first = group * kQuantizedRows;
    for (size_t row = first; row < std::min(first + kQuantizedRows, weights.rows()); ++row) {
      const auto row_data = std::span(data).subspan(row * layout.row_bytes(), layout.row_bytes());
      const auto row_scales =
          std::span(scales).subspan(row * layout.row_scale_bytes(), layout.row_scale_bytes());
      if (!tensor.encoded) {
        std::ranges::fill(padded, 0.0f);
        std::ranges::copy(weights.view().row(row), padded.begin());
        quantizer.Quantize(padded, row_data, row_scales);
      }
      quantizer.Dequantize(row_data, row_scales, padded);
      for (size_t i = 0; i < weights.columns(); ++i) error(row, i) = padded[i] - weights(row, i);
    }
  });
  return error;
}

}  // namespace cria
