#include "converter/calibrate/input_moments.h"

#include <algorithm>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/tiles.h"
#include "core/numeric.h"

namespace cria {
namespace {

// Adds transposed a * b. If `is_symmetric`, only tiles with elements on the diagonal or above it.
void AddInTiles(const ThreadPool& threads, ConstMatrixView a, ConstMatrixView b, bool is_symmetric,
                MatrixView sum) {
  ForEachTile(threads, sum.rows, sum.columns, [&](const Tile& tile) {
    if (is_symmetric && tile.column < tile.row) return;
    AddTransposedProduct(a.Columns(tile.row, tile.rows), b.Columns(tile.column, tile.columns),
                         sum.Rows(tile.row, tile.rows).Columns(tile.column, tile.columns));
  });
}

// Multiplies the upper triangle by a factor, and copies it to the lower one.
void FinishSymmetric(const ThreadPool& threads, float factor, MatrixView sum) {
  // In blocks that a cache holds, because half of the matrix is written by columns.
  constexpr size_t kBlock = 32;
  threads.ParallelFor(DivideRoundingUp(sum.rows, kBlock), [&](size_t block) {
    const size_t end = std::min(sum.rows, (block + 1) * kBlock);
    for (size_t first = block * kBlock; first < sum.columns; first += kBlock) {
      for (size_t i = block * kBlock; i < end; ++i) {
        for (size_t j = std::max(i, first); j < std::min(sum.columns, first + kBlock); ++j) {
          sum(i, j) *= factor;
          sum(j, i) = sum(i, j);
        }
      }
    }
  });
}

// Equal parts, but for whole blocks of every scheme.
std::vector<InputPart> PartsOf(const TensorLayout& layout, bool are_whole) {
  constexpr size_t kUnit = 256;
  const size_t inputs = layout.input_channels;
  const size_t num_parts = are_whole ? 1 : DivideRoundingUp(inputs, kMaxPartInputs);
  const size_t size = num_parts == 1 ? inputs : DivideRoundingUp(inputs, num_parts * kUnit) * kUnit;
  std::vector<InputPart> parts;
  for (size_t first = 0; first < inputs; first += size) {
    const size_t count = std::min(size, inputs - first);
    parts.push_back({.first = first, .count = count, .moments = Matrix(count, count)});
  }
  return parts;
}

}  // namespace

// A row of qc8w has one scale, and all of what inputs lack is needed for any part of them.
InputMoments::InputMoments(const TensorLayout& layout, OutputKind output_kind)
    : takes_inputs_(
          output_kind == OutputKind::kUnknownProducts ||
          (output_kind == OutputKind::kProducts && layout.output_channels > layout.input_channels)),
      parts_(PartsOf(layout, takes_inputs_ || layout.scheme == Scheme::kQc8w)),
      lacking_(takes_inputs_ ? layout.input_channels : layout.output_channels,
               layout.input_channels) {}

void InputMoments::Add(const ThreadPool& threads, ConstMatrixView inputs, ConstMatrixView lacking) {
  for (InputPart& part : parts_) {
    const ConstMatrixView of_part = inputs.Columns(part.first, part.count);
    AddInTiles(threads, of_part, of_part, /*is_symmetric=*/true, part.moments.view());
  }
  AddInTiles(threads, lacking, inputs, /*is_symmetric=*/false, lacking_.view());
  num_rows_ += inputs.rows;
}

void InputMoments::Finish(const ThreadPool& threads) {
  if (num_rows_ == 0) return;
  const float factor = 1.0f / static_cast<float>(num_rows_);
  for (InputPart& part : parts_) FinishSymmetric(threads, factor, part.moments.view());
  threads.ParallelFor(lacking_.rows(), [&](size_t row) {
    for (float& value : lacking_.view().row(row)) value *= factor;
  });
}

}  // namespace cria
