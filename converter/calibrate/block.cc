#include "converter/calibrate/block.h"

#include <algorithm>
#include <span>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/tile_size.h"
#include "converter/write/hadamard.h"
#include "core/format.h"
#include "core/numeric.h"

namespace cria {

Status CheckModelCalibrates(const ModelConfig& config) {
  const bool shares = std::ranges::any_of(
      config.layer_kinds, [](const LayerKind& kind) { return !kind.stores_tokens(); });
  if (shares || config.hidden_size_per_layer_input != 0 || config.enable_moe_block) {
    return Fail(ErrorCode::kUnsupported,
                Format("codes are not chosen for a text in models with {} yet",
                       shares                    ? "num_kv_shared_layers"
                       : config.enable_moe_block ? "enable_moe_block"
                                                 : "hidden_size_per_layer_input"));
  }
  return {};
}

Status CheckCalibrates(const ModelConfig& config) {
  CRIA_RETURN_IF_ERROR(CheckModelCalibrates(config));
  if (LinearAlgebraRuns()) return {};
  return Fail(ErrorCode::kUnsupported, "calibrating needs a processor with AVX2 and FMA");
}

Result<Matrix> ReadMatrix(const PlannedTensor& tensor) {
  const TensorSpec& spec = tensor.stored.spec;
  Matrix matrix = Matrix::Unfilled(spec.output_channels, spec.input_channels);
  std::span<float> rest = matrix.values();
  TensorReader reader;
  for (const MappedPart& part : tensor.parts) {
    const auto values = rest.first(part.source->num_elements());
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, 0, values));
    ApplyFactors(part, 0, spec.is_vector() ? values.size() : spec.input_channels, values);
    rest = rest.subspan(values.size());
  }
  if (tensor.rotates_outputs) RotateColumns(spec.input_channels, matrix.values());
  return matrix;
}

Result<std::vector<float>> ReadVector(const PlannedTensor* tensor) {
  if (tensor == nullptr) return std::vector<float>();
  CRIA_ASSIGN_OR_RETURN(const Matrix vector, ReadMatrix(*tensor));
  return std::vector<float>(vector.values().begin(), vector.values().end());
}

Matrix Multiply(const ThreadPool& threads, const Matrix& x, const Matrix& weights) {
  Matrix product = Matrix::Unfilled(x.rows(), weights.rows());
  const size_t tile_rows = TileSize(x.rows());
  const size_t tile_columns = TileSize(weights.rows());
  const size_t tiles = DivideRoundingUp(weights.rows(), tile_columns);
  threads.ParallelFor(DivideRoundingUp(x.rows(), tile_rows) * tiles, [&](size_t index) {
    const size_t row = index / tiles * tile_rows;
    const size_t rows = std::min(tile_rows, x.rows() - row);
    const size_t column = index % tiles * tile_columns;
    const size_t columns = std::min(tile_columns, weights.rows() - column);
    const MatrixView tile = product.view().Rows(row, rows).Columns(column, columns);
    for (size_t i = 0; i < rows; ++i) std::ranges::fill(tile.row(i), 0.0f);
    AddProductWithTransposed(x.view().Rows(row, rows), weights.view().Rows(column, columns), tile);
  });
  return product;
}

}  // namespace cria
