#include "converter/calibrate/matrix_calibration.h"

#include <algorithm>
#include <utility>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/row_solver.h"
#include "core/numeric.h"

namespace cria {
namespace {

// One of the two ways to store a matrix.
struct Candidate {
  explicit Candidate(const TensorLayout& layout)
      : values(layout.output_channels, layout.input_channels),
        data(layout.data_bytes()),
        scales(layout.scale_bytes()) {}

  Matrix values;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
};

// Where a candidate has a row.
struct RowPlace {
  std::span<std::byte> data;
  std::span<std::byte> scales;
};

RowPlace PlaceOf(Candidate& candidate, const TensorLayout& layout, size_t row) {
  return {std::span(candidate.data).subspan(row * layout.row_bytes(), layout.row_bytes()),
          std::span(candidate.scales)
              .subspan(row * layout.row_scale_bytes(), layout.row_scale_bytes())};
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

Result<CalibratedMatrix> CalibrateMatrix(const ThreadPool& threads, const Matrix& weights,
                                         const TensorLayout& layout, const InputMoments& training,
                                         const InputMoments& held_back) {
  CRIA_ASSIGN_OR_RETURN(const RowSolver solver, RowSolver::Create(training.inputs(), layout));
  Candidate rounded(layout);
  Candidate solved(layout);
  // Of rounding and of solving, by groups of rows, so that sums do not depend on the threads.
  struct Errors {
    double exact = 0.0;
    double rounded = 0.0;
    double solved = 0.0;
    double squared_weights = 0.0;
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
    RowQuantizer quantizer(layout);
    std::vector<float> padded(layout.padded_input_channels);
    const auto keep = [&](Candidate& candidate, size_t row) {
      const RowPlace place = PlaceOf(candidate, layout, row);
      quantizer.Dequantize(place.data, place.scales, padded);
      std::ranges::copy_n(padded.begin(), static_cast<ptrdiff_t>(weights.columns()),
                          candidate.values.view().row(row).begin());
    };
    for (size_t i = 0; i < count; ++i) {
      const RowPlace solved_row = PlaceOf(solved, layout, first + i);
      quantizer.Store(coded[i].codes, coded[i].scales, solved_row.data, solved_row.scales);
      keep(solved, first + i);
      std::ranges::fill(padded, 0.0f);
      std::ranges::copy(rows.row(i), padded.begin());
      const RowPlace rounded_row = PlaceOf(rounded, layout, first + i);
      errors[group].squared_weights +=
          quantizer.Quantize(padded, rounded_row.data, rounded_row.scales).squared_weights;
      keep(rounded, first + i);
    }
    const auto errors_of = [&](const Candidate& candidate) {
      return ErrorsOf(held_back, first, rows, candidate.values.view().Rows(first, count));
    };
    const OutputErrors of_rounded = errors_of(rounded);
    errors[group].exact = of_rounded.exact;
    errors[group].rounded = of_rounded.added;
    errors[group].solved = errors_of(solved).added;
  });
  Errors sum;
  for (const Errors& error : errors) {
    sum.exact += error.exact;
    sum.rounded += error.rounded;
    sum.solved += error.solved;
    sum.squared_weights += error.squared_weights;
  }
  const bool is_better = sum.solved < sum.rounded;
  sum.exact += held_back.output_squares();
  Candidate& chosen = is_better ? solved : rounded;
  CalibratedMatrix result = {
      .values = std::move(chosen.values),
      .data = std::move(chosen.data),
      .scales = std::move(chosen.scales),
      .held_back_ratio = is_better ? (sum.exact + sum.solved) / (sum.exact + sum.rounded) : 1.0,
      .is_calibrated = is_better};
  result.error = {.squared_error = SquaredDifference(result.values, weights),
                  .squared_weights = sum.squared_weights};
  return result;
}

}  // namespace cria
