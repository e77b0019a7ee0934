#include "converter/calibrate/input_moments.h"

#include <algorithm>

#include "converter/calibrate/linear_algebra.h"
#include "core/numeric.h"

namespace cria {
namespace {

// A thread adds to at most so many rows and columns of a sum at once.
constexpr size_t kTile = 256;

// The size of equal tiles of `size` rows or columns, which threads share better than a small rest.
size_t TileSize(size_t size) {
  constexpr size_t kUnit = 8;
  const size_t tiles = DivideRoundingUp(size, kTile);
  return DivideRoundingUp(DivideRoundingUp(size, tiles), kUnit) * kUnit;
}

// Adds transposed a * b, in tiles that do not depend on the number of threads. If `is_symmetric`,
// only those with elements on the diagonal or above it.
void AddInTiles(const ThreadPool& threads, ConstMatrixView a, ConstMatrixView b, bool is_symmetric,
                MatrixView sum) {
  const size_t tile_rows = TileSize(sum.rows);
  const size_t tile_columns = TileSize(sum.columns);
  const size_t tiles = DivideRoundingUp(sum.columns, tile_columns);
  threads.ParallelFor(DivideRoundingUp(sum.rows, tile_rows) * tiles, [&](size_t index) {
    const size_t row = index / tiles * tile_rows;
    const size_t column = index % tiles * tile_columns;
    if (is_symmetric && column < row) return;
    const size_t rows = std::min(tile_rows, sum.rows - row);
    const size_t columns = std::min(tile_columns, sum.columns - column);
    AddTransposedProduct(a.Columns(row, rows), b.Columns(column, columns),
                         sum.Rows(row, rows).Columns(column, columns));
  });
}

}  // namespace

void InputMoments::Add(const ThreadPool& threads, ConstMatrixView inputs,
                       ConstMatrixView exact_inputs, ConstMatrixView exact_outputs) {
  AddInTiles(threads, inputs, inputs, /*is_symmetric=*/true, inputs_.view());
  AddInTiles(threads, is_wide_ ? exact_inputs : exact_outputs, inputs, /*is_symmetric=*/false,
             exact_.view());
  threads.ParallelFor(DivideRoundingUp(exact_outputs.columns, kTile), [&](size_t index) {
    const size_t first = index * kTile;
    const size_t end = std::min(first + kTile, exact_outputs.columns);
    for (size_t row = 0; row < exact_outputs.rows; ++row) {
      const std::span<const float> values = exact_outputs.row(row);
      for (size_t i = first; i < end; ++i) output_squares_[i] += double{values[i]} * values[i];
    }
  });
  num_rows_ += inputs.rows;
}

void InputMoments::Finish() {
  if (num_rows_ == 0) return;
  const float factor = 1.0f / static_cast<float>(num_rows_);
  for (size_t i = 0; i < inputs_.rows(); ++i) {
    for (size_t j = i; j < inputs_.columns(); ++j) {
      inputs_(i, j) *= factor;
      inputs_(j, i) = inputs_(i, j);
    }
  }
  for (float& value : exact_.values()) value *= factor;
  for (double& square : output_squares_) square /= static_cast<double>(num_rows_);
}

Matrix InputMoments::OutputsOf(ConstMatrixView weights, size_t first, size_t step) const {
  Matrix outputs(weights.rows, weights.columns);
  if (is_wide_) {
    AddProduct(weights, exact_.view(), 1.0f, outputs.view());
    return outputs;
  }
  for (size_t row = 0; row < weights.rows; ++row) {
    std::ranges::copy(exact_.view().row(first + row * step), outputs.view().row(row).begin());
  }
  return outputs;
}

}  // namespace cria
