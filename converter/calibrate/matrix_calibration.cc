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

// The mean squared errors of the outputs of a matrix's rows.
class OutputErrors {
 public:
  // `weights` are the rows from `first_row` on.
  OutputErrors(const InputMoments& moments, size_t first_row, ConstMatrixView weights)
      : moments_(moments), weights_(weights), slopes_(weights.rows, weights.columns) {
    AddProduct(weights, moments.inputs().view(), 1.0f, slopes_.view());
    for (size_t row = 0; row < weights.rows; ++row) {
      for (size_t i = 0; i < weights.columns; ++i) {
        const double product = slopes_(row, i);
        const double output = moments.outputs()(first_row + row, i);
        exact_ += (product - 2.0 * output) * weights(row, i);
        slopes_(row, i) = static_cast<float>(2.0 * (product - output));
      }
    }
  }

  // Of the weights themselves, less the squares of the outputs:
  // weights * (moments * transposed weights - 2 * transposed outputs).
  double exact() const { return exact_; }

  // How much larger the error is with `values` in place of the weights; both have the same shape.
  // With d = values - weights: d * (moments * transposed (d + 2 * weights) - 2 * transposed
  // outputs).
  double AddedBy(ConstMatrixView values) const {
    Matrix difference(weights_.rows, weights_.columns);
    for (size_t row = 0; row < weights_.rows; ++row) {
      for (size_t i = 0; i < weights_.columns; ++i) {
        difference(row, i) = values(row, i) - weights_(row, i);
      }
    }
    Matrix products = slopes_;
    AddProduct(difference.view(), moments_.inputs().view(), 1.0f, products.view());
    double sum = 0.0;
    for (size_t i = 0; i < products.values().size(); ++i) {
      sum += double{difference.values()[i]} * products.values()[i];
    }
    return sum;
  }

 private:
  const InputMoments& moments_;
  ConstMatrixView weights_;
  Matrix slopes_;  // 2 * (weights * moments - outputs)
  double exact_ = 0.0;
};

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
  CRIA_ASSIGN_OR_RETURN(const RowSolver solver,
                        RowSolver::Create(threads, training.inputs(), layout));
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
    const OutputErrors of_outputs(held_back, first, rows);
    const auto added_by = [&](const CalibratedMatrix& matrix) {
      return of_outputs.AddedBy(matrix.values.view().Rows(first, count));
    };
    errors[group] = {
        .exact = of_outputs.exact(), .rounded = added_by(rounded), .solved = added_by(solved)};
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
