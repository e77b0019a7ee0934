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

// The mean squared errors of some outputs of a matrix.
class OutputErrors {
 public:
  // `weights` are rows first, first + step, ... of the matrix.
  OutputErrors(const InputMoments& moments, size_t first, size_t step, ConstMatrixView weights)
      : moments_(moments), weights_(weights), slopes_(weights.rows, weights.columns) {
    AddProduct(weights, moments.inputs().view(), 1.0f, slopes_.view());
    const Matrix outputs = moments.OutputsOf(weights, first, step);
    for (size_t row = 0; row < weights.rows; ++row) {
      for (size_t i = 0; i < weights.columns; ++i) {
        const double product = slopes_(row, i);
        const double output = outputs(row, i);
        exact_ += (product - 2.0 * output) * weights(row, i);
        slopes_(row, i) = static_cast<float>(2.0 * (product - output));
      }
      exact_ += moments.output_squares()[first + row * step];
    }
  }

  // The error of the weights themselves is weights * (moments * transposed weights - 2 * transposed
  // outputs) + the squares of the outputs.
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

// Every so many rows of a matrix are judged: a few hundred outputs say as much as all.
size_t JudgedStep(size_t rows) { return std::clamp<size_t>(rows / 256, 1, 8); }

// Sums over judged rows.
struct Errors {
  double exact = 0.0;
  double rounded = 0.0;  // What rounding adds.
  double solved = 0.0;   // What solving adds.
};

// Compares rounded weights, and those that were solved, for moments of inputs that decided nothing.
Errors Judge(const ThreadPool& threads, const Matrix& weights, const Matrix& solved,
             const TensorLayout& layout, const InputMoments& held_back) {
  const size_t step = JudgedStep(weights.rows());
  const size_t num_judged = DivideRoundingUp(weights.rows(), step);
  // By groups of rows, so that sums do not depend on the threads.
  constexpr size_t kGroupRows = 48;
  std::vector<Errors> errors(DivideRoundingUp(num_judged, kGroupRows));
  threads.ParallelFor(errors.size(), [&](size_t group) {
    const size_t first = group * kGroupRows;
    const size_t count = std::min(kGroupRows, num_judged - first);
    Matrix exact_rows(count, weights.columns());
    Matrix rounded_rows(count, weights.columns());
    Matrix solved_rows(count, weights.columns());
    RowQuantizer quantizer(layout);
    for (size_t i = 0; i < count; ++i) {
      const size_t row = (first + i) * step;
      std::ranges::copy(weights.view().row(row), exact_rows.view().row(i).begin());
      std::ranges::copy(solved.view().row(row), solved_rows.view().row(i).begin());
      std::ranges::copy(weights.view().row(row), rounded_rows.view().row(i).begin());
      quantizer.Round(rounded_rows.view().row(i));
    }
    const OutputErrors of_outputs(held_back, first * step, step, std::as_const(exact_rows).view());
    errors[group] = {.exact = of_outputs.exact(),
                     .rounded = of_outputs.AddedBy(std::as_const(rounded_rows).view()),
                     .solved = of_outputs.AddedBy(std::as_const(solved_rows).view())};
  });
  Errors sum;
  for (const Errors& error : errors) {
    sum.exact += error.exact;
    sum.rounded += error.rounded;
    sum.solved += error.solved;
  }
  return sum;
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
  CalibratedMatrix solved = EmptyMatrix(layout);
  const size_t rows_at_once = RowSolver::RowsAtOnce(weights.rows());
  threads.ParallelFor(DivideRoundingUp(weights.rows(), rows_at_once), [&](size_t group) {
    const size_t first = group * rows_at_once;
    const size_t count = std::min(rows_at_once, weights.rows() - first);
    const ConstMatrixView rows = weights.view().Rows(first, count);
    Matrix targets(count, weights.columns());
    for (size_t i = 0; i < count; ++i) {
      std::ranges::copy(rows.row(i), targets.view().row(i).begin());
    }
    const Matrix outputs = training.OutputsOf(rows, first);
    solver.Correct(outputs.view(), targets.view());
    const std::vector<CodedRow> coded = solver.Solve(targets.view());
    const RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    for (size_t i = 0; i < count; ++i) {
      const RowPlace place = PlaceOf(solved, layout, first + i);
      quantizer.Store(coded[i], place.data, place.scales);
      FillValues(quantizer, layout, first + i, padded, solved);
    }
  });
  const Errors errors = Judge(threads, weights, solved.values, layout, held_back);
  if (!(errors.solved < errors.rounded)) return RoundMatrix(threads, weights, layout);
  solved.held_back_ratio = (errors.exact + errors.solved) / (errors.exact + errors.rounded);
  solved.is_calibrated = true;
  solved.error.squared_error = SquaredDifference(solved.values, weights);
  for (const float weight : weights.values()) {
    solved.error.squared_weights += double{weight} * weight;
  }
  return solved;
}

}  // namespace cria
