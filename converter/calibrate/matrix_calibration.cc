#include "converter/calibrate/matrix_calibration.h"

#include <algorithm>
#include <utility>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/row_solver.h"
#include "core/numeric.h"

namespace cria {
namespace {

// Where a matrix has a row.
struct RowPlace {
  std::span<std::byte> data;
  std::span<std::byte> scales;
};

RowPlace PlaceOf(CalibratedMatrix& matrix, const TensorLayout& layout, size_t row) {
  return {
      std::span(matrix.data).subspan(row * layout.row_bytes(), layout.row_bytes()),
      std::span(matrix.scales).subspan(row * layout.row_scale_bytes(), layout.row_scale_bytes())};
}

// Where such a row has the inputs from `first` on, which have a layout of their own.
RowPlace PlaceOf(CalibratedMatrix& matrix, const TensorLayout& layout, size_t row, size_t first,
                 const TensorLayout& layout_of_inputs) {
  const RowPlace place = PlaceOf(matrix, layout, row);
  const auto part_of = [&](std::span<std::byte> bytes, uint64_t part_bytes) {
    return bytes.subspan(bytes.size() * first / layout.padded_input_channels, part_bytes);
  };
  return {part_of(place.data, layout_of_inputs.row_bytes()),
          part_of(place.scales, layout_of_inputs.row_scale_bytes())};
}

// The layout of the same rows with some of the inputs, which are whole blocks unless they are the
// last.
TensorLayout LayoutOfInputs(TensorLayout layout, size_t first, size_t count) {
  const bool are_last = first + count == layout.input_channels;
  layout.padded_input_channels = are_last ? layout.padded_input_channels - first : count;
  layout.input_channels = count;
  return layout;
}

// Without any codes yet.
CalibratedMatrix EmptyMatrix(const TensorLayout& layout) {
  CalibratedMatrix matrix;
  matrix.values = Matrix::Unfilled(layout.output_channels, layout.input_channels);
  matrix.data.resize(layout.data_bytes());
  matrix.scales.resize(layout.scale_bytes());
  return matrix;
}

// Fills in what such codes stand for. `padded` has the layout's padded_input_channels floats.
void FillValues(const RowQuantizer& quantizer, const RowPlace& place, std::span<float> padded,
                std::span<float> values) {
  quantizer.Dequantize(place.data, place.scales, padded);
  std::ranges::copy(padded.first(values.size()), values.begin());
}

double SquaredDifference(const Matrix& a, const Matrix& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.values().size(); ++i) {
    const double difference = double{a.values()[i]} - b.values()[i];
    sum += difference * difference;
  }
  return sum;
}

// The squared errors of some outputs of a matrix, for all rows.
double SquaredErrors(const HeldBackRows& held_back, ConstMatrixView weights,
                     const Matrix& outputs) {
  Matrix products(outputs.rows(), outputs.columns());
  AddProductWithTransposed(held_back.inputs().view(), weights, products.view());
  return SquaredDifference(products, outputs);
}

// Sums over judged outputs.
struct Errors {
  double rounded = 0.0;
  double solved = 0.0;
};

// Compares rounded weights, and those that were solved, for rows that decided nothing.
Errors Judge(const ThreadPool& threads, const Matrix& weights, const Matrix& solved,
             const TensorLayout& layout, const HeldBackRows& held_back) {
  const size_t step = HeldBackRows::JudgedStep(weights.rows());
  const size_t num_judged = DivideRoundingUp(weights.rows(), step);
  // By groups of rows, so that sums do not depend on the threads.
  constexpr size_t kGroupRows = 48;
  std::vector<Errors> errors(DivideRoundingUp(num_judged, kGroupRows));
  threads.ParallelFor(errors.size(), [&](size_t group) {
    const size_t first = group * kGroupRows;
    const size_t count = std::min(kGroupRows, num_judged - first);
    Matrix rows(count, weights.columns());
    const auto take_rows = [&](const Matrix& matrix) {
      for (size_t i = 0; i < count; ++i) {
        std::ranges::copy(matrix.view().row((first + i) * step), rows.view().row(i).begin());
      }
      return std::as_const(rows).view();
    };
    const Matrix outputs = held_back.OutputsOf(take_rows(weights), first * step);
    RowQuantizer quantizer(layout);
    for (size_t i = 0; i < count; ++i) quantizer.Round(rows.view().row(i));
    errors[group].rounded = SquaredErrors(held_back, rows.view(), outputs);
    errors[group].solved = SquaredErrors(held_back, take_rows(solved), outputs);
  });
  Errors sum;
  for (const Errors& error : errors) {
    sum.rounded += error.rounded;
    sum.solved += error.solved;
  }
  return sum;
}

// Chooses the codes of all rows for some of the inputs.
Status SolvePart(const ThreadPool& threads, const Matrix& weights, const TensorLayout& layout,
                 InputPart part, InputMoments& training, CalibratedMatrix& solved) {
  const TensorLayout layout_of_part = LayoutOfInputs(layout, part.first, part.count);
  CRIA_ASSIGN_OR_RETURN(const RowSolver solver,
                        RowSolver::Create(threads, std::move(part.moments), layout_of_part));
  Matrix correction;
  if (training.takes_inputs()) {  // Then there is one part.
    correction = solver.CorrectionOfProducts(threads, training.TakeLacking());
  }
  const size_t rows_at_once = RowSolver::RowsAtOnce(weights.rows());
  threads.ParallelFor(DivideRoundingUp(weights.rows(), rows_at_once), [&](size_t group) {
    const size_t first = group * rows_at_once;
    const size_t count = std::min(rows_at_once, weights.rows() - first);
    const auto rows_of = [&](const Matrix& matrix) {
      return matrix.view().Rows(first, count).Columns(part.first, part.count);
    };
    Matrix targets(count, part.count);
    for (size_t i = 0; i < count; ++i) {
      std::ranges::copy(rows_of(weights).row(i), targets.view().row(i).begin());
    }
    if (training.takes_inputs()) {
      AddProduct(rows_of(weights), std::as_const(correction).view(), 1.0f, targets.view());
    } else {
      solver.Correct(rows_of(training.lacking()), targets.view());
    }
    const std::vector<CodedRow> coded = solver.Solve(targets.view());
    const RowQuantizer quantizer(layout_of_part);
    std::vector<float> padded(layout_of_part.padded_input_channels);
    for (size_t i = 0; i < count; ++i) {
      const RowPlace place = PlaceOf(solved, layout, first + i, part.first, layout_of_part);
      quantizer.Store(coded[i], place.data, place.scales);
      FillValues(quantizer, place, padded,
                 solved.values.view().row(first + i).subspan(part.first, part.count));
    }
  });
  return {};
}

}  // namespace

CalibratedMatrix RoundMatrix(const ThreadPool& threads, const Matrix& weights,
                             const TensorLayout& layout) {
  CalibratedMatrix rounded = EmptyMatrix(layout);
  // By groups of rows, so that sums do not depend on the threads.
  constexpr size_t kGroupRows = 96;
  std::vector<double> squared_weights(DivideRoundingUp(weights.rows(), kGroupRows));
  threads.ParallelFor(squared_weights.size(), [&](size_t group) {
    const size_t first = group * kGroupRows;
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    for (size_t row = first; row < std::min(first + kGroupRows, weights.rows()); ++row) {
      std::ranges::fill(padded, 0.0f);
      std::ranges::copy(weights.view().row(row), padded.begin());
      const RowPlace place = PlaceOf(rounded, layout, row);
      squared_weights[group] +=
          quantizer.Quantize(padded, place.data, place.scales).squared_weights;
      FillValues(quantizer, place, padded, rounded.values.view().row(row));
    }
  });
  rounded.error.squared_error = SquaredDifference(rounded.values, weights);
  for (const double each : squared_weights) rounded.error.squared_weights += each;
  return rounded;
}

Result<CalibratedMatrix> CalibrateMatrix(const ThreadPool& threads, const Matrix& weights,
                                         const TensorLayout& layout, InputMoments training,
                                         const HeldBackRows& held_back) {
  CalibratedMatrix solved = EmptyMatrix(layout);
  for (InputPart& part : training.TakeParts()) {
    CRIA_RETURN_IF_ERROR(SolvePart(threads, weights, layout, std::move(part), training, solved));
  }
  const Errors errors = Judge(threads, weights, solved.values, layout, held_back);
  if (!(errors.solved < errors.rounded)) return RoundMatrix(threads, weights, layout);
  solved.held_back_ratio = errors.solved / errors.rounded;
  solved.is_calibrated = true;
  solved.error.squared_error = SquaredDifference(solved.values, weights);
  for (const float weight : weights.values()) {
    solved.error.squared_weights += double{weight} * weight;
  }
  return solved;
}

}  // namespace cria
