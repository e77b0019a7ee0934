#include "converter/calibrate/block.h"

#include <algorithm>
#include <span>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/tiles.h"
#include "converter/write/hadamard.h"
#include "core/format.h"

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
  ForEachTile(threads, product.rows(), product.columns(), [&](const Tile& tile) {
    const MatrixView sums =
        product.view().Rows(tile.row, tile.rows).Columns(tile.column, tile.columns);
    for (size_t i = 0; i < tile.rows; ++i) std::ranges::fill(sums.row(i), 0.0f);
    AddProductWithTransposed(x.view().Rows(tile.row, tile.rows),
                             weights.view().Rows(tile.column, tile.columns), sums);
  });
  return product;
}

}  // namespace cria
