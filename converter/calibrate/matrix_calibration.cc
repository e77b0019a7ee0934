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

// Without any codes yet.
CalibratedMatrix EmptyMatrix(const TensorLayout& layout) {
  CalibratedMatrix matrix;
  matrix.values = Matrix(layout.output_channels, layout.input_channels);
  matrix.data.resize(layout.data_bytes());
  matrix.scales.resize(layout.scale_bytes());
  return matrix;
}

// Fills in what the row's codes stand for. `padded` has layout.padded_input_channels floats.
void FillValues(const RowQuantizer& quantizer, const TensorLayout& layout, size_t row,
                std::span<float> padded, CalibratedMatrix& matrix) {
  const RowPlace place = PlaceOf(matrix, layout, row);
  quantizer.Dequantize(place.data, place.scales, padded);
  std::ranges::copy(padded.first(layout.input_channels), matrix.values.view().row(row).begin());
}

// sum of a * b
double SumOfProducts(const Matrix& a, const Matrix& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.values().size(); ++i) sum += double{a.values()[i]} * b.values()[i];
  return sum;
}

// Mean squared errors of outputs.
struct OutputErrors {
  double exact = 0.0;  // Of the weights themselves, less the squares of the outputs.
  double added = 0.0;  // What the values add to it.
};

// For these rows, with d = values - weights:
// exact: weights * (moments * transposed weights - 2 * transposed outputs),
// added: d * (moments * transposed (d + 2 * weights) - 2 * transposed outputs).
OutputErrors ErrorsOf(const InputMoments& moments, size_t first_row, ConstMatrixView weights,
                      ConstMatrixView values) {
  const size_t columns = weights.columns;
  Matrix exact(weights.rows, columns);
  Matrix difference(weights.rows, columns);
  Matrix products(weights.rows, columns);
  for (size_t row = 0; row < weights.rows; ++row) {
    for (size_t i = 0; i < columns; ++i) {
      exact(row, i) = weights(row, i);
      difference(row, i) = values(row, i) - weights(row, i);
      products(row, i) = -2.0f * moments.outputs()(first_row + row, i);
    }
  }
  const ConstMatrixView inputs = moments.inputs().view();
  AddProduct(weights, inputs, 1.0f, products.view());
  OutputErrors errors = {.exact = SumOfProducts(exact, products)};
  AddProduct(weights, inputs, 1.0f, products.view());
  AddProduct(difference.view(), inputs, 1.0f, products.view());
  errors.added = SumOfProducts(difference, products);
  return errors;
}

double SquaredDifference(const Matrix& a, const Matrix& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.values().size(); ++i) {
    const double difference = double{a.values()[i]} - b.values()[i];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

CalibratedMatrix RoundMatrix(const ThreadPool& threads, const Matrix& weights,
                             const TensorLayout& layout) {
  CalibratedMatrix rounded = EmptyMatrix(layout);
  // By groups of rows, so that sums do not depend on the threads.
  std::vector<double> squared_weights(DivideRoundingUp(weights.rows(), RowSolver::kMaxRows));
  threads.ParallelFor(squared_weights.size(), [&](size_t group) {
    const size_t first = group * RowSolver::kMaxRows;
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    for (size_t row = first; row < std::min(first + RowSolver::kMaxRows, weights.rows()); ++row) {
      std::ranges::fill(padded, 0.0f);
      std::ranges::copy(weights.view().row(row), padded.begin());
      const RowPlace place = PlaceOf(rounded, layout, row);
      squared_weights[group] +=
          quantizer.Quantize(padded, place.data, place.scales).squared_weights;
      FillValues(quantizer, layout, row, padded, rounded);
    }
  });
  rounded.error.squared_error = SquaredDifference(rounded.values, weights);
  for (const double each : squared_weights) rounded.error.squared_weights += each;
  return rounded;
}

Result<CalibratedMatrix> CalibrateMatrix(const ThreadPool& threads, const Matrix& weights,
                                         const TensorLayout& layout, const InputMoments& training,
                                         const InputMoments& held_back) {
  CRIA_ASSIGN_OR_RETURN(const RowSolver solver, RowSolver::Create(training.inputs(), layout));
  CalibratedMatrix rounded = RoundMatrix(threads, weights, layout);
  CalibratedMatrix solved = EmptyMatrix(layout);
  // Of rounding and of solving, by groups of rows as well.
  struct Errors {
    double exact = 0.0;
    double rounded = 0.0;
    double solved = 0.0;
  };
  std::vector<Errors> errors(DivideRoundingUp(weights.rows(), RowSolver::kMaxRows));
  threads.ParallelFor(errors.size(), [&](size_t group) {
    const size_t first = group * RowSolver::kMaxRows;
    const size_t count = std::min(RowSolver::kMaxRows, weights.rows() - first);
    const ConstMatrixView rows = weights.view().Rows(first, count);
    Matrix targets(count, weights.columns());
    for (size_t i = 0; i < count; ++i) {
      std::ranges::copy(rows.row(i), targets.view().row(i).begin());
    }
    solver.Correct(training.outputs().view().Rows(first, count), targets.view());
    const std::vector<CodedRow> coded = solver.Solve(targets.view());
    const RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    for (size_t i = 0; i < count; ++i) {
      const RowPlace place = PlaceOf(solved, layout, first + i);
      quantizer.Store(coded[i].codes, coded[i].scales, place.data, place.scales);
      FillValues(quantizer, layout, first + i, padded, solved);
    }
    const auto errors_of = [&](const CalibratedMatrix& matrix) {
      return ErrorsOf(held_back, first, rows, matrix.values.view().Rows(first, count));
    };
    const OutputErrors of_rounded = errors_of(rounded);
    errors[group] = {
        .exact = of_rounded.exact, .rounded = of_rounded.added, .solved = errors_of(solved).added};
  });
  Errors sum;
  for (const Errors& error : errors) {
    sum.exact += error.exact;
    sum.rounded += error.rounded;
    sum.solved += error.solved;
  }
  if (!(sum.solved < sum.rounded)) return rounded;
  sum.exact += held_back.output_squares();
  solved.held_back_ratio = (sum.exact + sum.solved) / (sum.exact + sum.rounded);
  solved.is_calibrated = true;
  solved.error = {.squared_error = SquaredDifference(solved.values, weights),
                  .squared_weights = rounded.error.squared_weights};
  return solved;
}

}  // namespace cria
