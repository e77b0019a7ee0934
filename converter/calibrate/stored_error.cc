#include "converter/calibrate/stored_error.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "core/numeric.h"

namespace cria {
namespace {

constexpr size_t kRowsOfThread = 64;  // Rows that a thread takes at once.

}  // namespace

Status TakeStoredRows(const ThreadPool& threads, const PlannedTensor& tensor, size_t first,
                      MatrixView rows) {
  const TensorLayout& layout = tensor.stored.layout;
  std::vector<std::byte> data(rows.rows * layout.row_bytes());
  std::vector<std::byte> scales(rows.rows * layout.row_scale_bytes());
  if (tensor.encoded) {
    const EncodedTensor& encoded = *tensor.encoded;
    CRIA_RETURN_IF_ERROR(
        encoded.file->ReadAt(encoded.data_offset + first * layout.row_bytes(), data));
    CRIA_RETURN_IF_ERROR(
        encoded.file->ReadAt(encoded.scale_offset + first * layout.row_scale_bytes(), scales));
  }
  threads.ParallelFor(DivideRoundingUp(rows.rows, kRowsOfThread), [&](size_t group) {
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    for (size_t row = group * kRowsOfThread; row < std::min((group + 1) * kRowsOfThread, rows.rows);
         ++row) {
      if (!tensor.encoded) {
        quantizer.Round(rows.row(row));
        continue;
      }
      quantizer.Dequantize(
          std::span(data).subspan(row * layout.row_bytes(), layout.row_bytes()),
          std::span(scales).subspan(row * layout.row_scale_bytes(), layout.row_scale_bytes()),
          padded);
      std::ranges::copy(std::span(padded).first(rows.columns), rows.row(row).begin());
    }
  });
  return {};
}

Result<Matrix> StoredError(const ThreadPool& threads, const Matrix& weights,
                           const PlannedTensor& tensor, const TensorLayout& layout) {
  std::vector<std::byte> data(layout.data_bytes());
  std::vector<std::byte> scales(layout.scale_bytes());
  if (tensor.encoded) {
    const EncodedTensor& encoded = *tensor.encoded;
    CRIA_RETURN_IF_ERROR(encoded.file->ReadAt(encoded.data_offset, data));
    CRIA_RETURN_IF_ERROR(encoded.file->ReadAt(encoded.scale_offset, scales));
  }
  Matrix error(weights.rows(), weights.columns());
  threads.ParallelFor(DivideRoundingUp(weights.rows(), kRowsOfThread), [&](size_t group) {
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    const size_t first = group * kRowsOfThread;
    for (size_t row = first; row < std::min(first + kRowsOfThread, weights.rows()); ++row) {
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
