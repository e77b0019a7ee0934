#include "converter/calibrate/row_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "converter/calibrate/linear_algebra.h"
#include "core/numeric.h"

namespace cria {
namespace {

// A text shows fewer inputs than a model meets, and correlations between them that other texts
// lack. So moments off the diagonal lose this part (shrinkage toward the diagonal: Ledoit and Wolf
// 2004), and the diagonal gains a part of its mean.
constexpr float kShrinkage = 0.5f;
constexpr double kDamping = 0.02;
// The part of what rows lack that Correct adds.
constexpr float kCorrected = 0.5f;
constexpr int kSweeps = 3;
// Columns between two products with all others.
constexpr size_t kBatchColumns = 128;

}  // namespace

// The state of the rows that are solved together; each matrix is [count, n].
struct RowSolver::Work {
  ConstMatrixView targets;
  Matrix errors;  // Targets minus the values of the codes.
  // While weights are rounded, what rounding each has added, times its pivot: errors * u_ *
  // diagonal(pivots_). From then on, the squared error's gradients, halved: errors * moments_.
  Matrix gradients;
  std::vector<CodedRow> rows;
  std::vector<float> scratch;
};

RowSolver::RowSolver(Matrix moments, const TensorLayout& layout)
    : layout_(layout),
      rule_(ScaleRuleOf(layout.scheme)),
      block_size_(WeightsOfScale(layout)),
      moments_(std::move(moments)),
      block_sums_(moments_.rows()),
      u_(moments_.rows(), moments_.rows()),
      pivots_(moments_.rows()) {}

Result<RowSolver> RowSolver::Create(const ThreadPool& threads, Matrix moments,
                                    const TensorLayout& layout) {
  RowSolver solver(std::move(moments), layout);
  Matrix& damped = solver.moments_;
  double trace = 0.0;
  for (size_t i = 0; i < damped.rows(); ++i) trace += damped(i, i);
  const double mean = trace / static_cast<double>(damped.rows());
  // Without inputs, every weight counts the same.
  const auto damping = static_cast<float>(mean > 0.0 ? kDamping * mean : 1.0);
  for (size_t i = 0; i < damped.rows(); ++i) {
    for (size_t j = 0; j < damped.rows(); ++j) {
      if (j != i) damped(i, j) *= 1.0f - kShrinkage;
    }
    damped(i, i) += damping;
  }
  for (size_t i = 0; i < damped.rows(); ++i) {
    const size_t begin = i / solver.block_size_ * solver.block_size_;
    const auto block =
        std::as_const(damped).view().row(i).subspan(begin, solver.BlockEnd(i) - begin);
    solver.block_sums_[i] = std::accumulate(block.begin(), block.end(), 0.0f);
  }
  if (!std::isfinite(trace) ||
      !FactorizeUpper(threads, damped.view(), solver.u_.view(), solver.pivots_)) {
    return Fail(ErrorCode::kUnsupported,
                "the activations of the calibration text are out of the range of f32");
  }
  return solver;
}

size_t RowSolver::BatchEnd(size_t begin) const {
  // A row with one scale is in many batches.
  const size_t block = layout_.scheme == Scheme::kQc8w ? 0 : block_size_;
  return std::min(begin + std::max(kBatchColumns, block), moments_.rows());
}

size_t RowSolver::BlockEnd(size_t begin) const {
  return std::min((begin / block_size_ + 1) * block_size_, moments_.rows());
}

void RowSolver::Correct(ConstMatrixView lacking, MatrixView rows) const {
  Matrix missing(rows.rows, rows.columns);
  for (size_t row = 0; row < rows.rows; ++row) {
    std::ranges::copy(lacking.row(row), missing.view().row(row).begin());
  }
  DivideByFactorized(u_.view(), pivots_, missing.view());
  for (size_t row = 0; row < rows.rows; ++row) {
    AddScaled(missing.view().row(row), kCorrected, rows.row(row));
  }
}

Matrix RowSolver::CorrectionOfProducts(const ThreadPool& threads, Matrix lacking) const {
  constexpr size_t kGroupRows = 96;
  threads.ParallelFor(DivideRoundingUp(lacking.rows(), kGroupRows), [&](size_t group) {
    const size_t first = group * kGroupRows;
    const size_t count = std::min(kGroupRows, lacking.rows() - first);
    const MatrixView rows = lacking.view().Rows(first, count);
    DivideByFactorized(u_.view(), pivots_, rows);
    for (size_t row = 0; row < count; ++row) {
      for (float& value : rows.row(row)) value *= kCorrected;
    }
  });
  return lacking;
}

std::vector<CodedRow> RowSolver::Solve(ConstMatrixView targets) const {
  Work work = {.targets = targets,
               .errors = Matrix(targets.rows, targets.columns),
               .gradients = Matrix(targets.rows, targets.columns),
               .rows = std::vector<CodedRow>(targets.rows, CodedRow::Empty(layout_)),
               .scratch = std::vector<float>(ScaleSearchScratch(layout_.padded_input_channels))};
  RoundInOrder(work);
  FindGradients(work);
  Descend(work);
  return std::move(work.rows);
}

void RowSolver::RoundInOrder(Work& work) const {
  const size_t size = moments_.rows();
  for (size_t begin = 0; begin < size;) {
    const size_t end = BatchEnd(begin);
    // What the columns so far have lost, and these can make up for.
    Matrix wanted(work.targets.rows, end - begin);
    AddProduct(work.errors.view().Columns(0, begin),
               u_.view().Rows(0, begin).Columns(begin, end - begin), 1.0f, wanted.view());
    for (size_t row = 0; row < wanted.rows(); ++row) {
      for (size_t i = begin; i < end; ++i) wanted(row, i - begin) += work.targets(row, i);
      RoundBatch(row, begin, end, wanted.view(), work);
    }
    begin = end;
  }
}

void RowSolver::RoundBatch(size_t row, size_t begin, size_t end, MatrixView wanted,
                           Work& work) const {
  CodedRow& coded = work.rows[row];
  const std::span<float> values = wanted.row(row);
  for (size_t i = begin; i < end; ++i) {
    float& scale = coded.scales[i / block_size_];
    float& minimum = coded.minimums[i / block_size_];
    if (BeginsBlock(i)) {
      const size_t block_size = BlockEnd(i) - i;
      const bool is_in_batch = i + block_size <= end;
      const std::span<const float> searched =
          is_in_batch ? std::span<const float>(values).subspan(i - begin, block_size)
                      : work.targets.row(row).subspan(i, block_size);
      const ScaleFit fit = SearchScale(searched, rule_, work.scratch);
      scale = fit.scale;
      minimum = fit.minimum;
    }
    const float code = CodeOf(values[i - begin] + minimum, 1.0f / scale, rule_.range);
    const float value = code * scale - minimum;
    const float error = work.targets(row, i) - value;
    coded.codes[i] = code;
    work.errors(row, i) = error;
    work.gradients(row, i) = (values[i - begin] - value) * pivots_[i];
    AddScaled(u_.view().row(i).subspan(i + 1, end - i - 1), error, values.subspan(i + 1 - begin));
  }
}

void RowSolver::FindGradients(Work& work) const {
  const size_t size = moments_.rows();
  for (size_t begin = 0; begin < size;) {
    const size_t end = BatchEnd(begin);
    const MatrixView rest = work.gradients.view().Columns(begin, size - begin);
    Matrix gradients(rest.rows, end - begin);
    AddProductWithTransposed(rest, u_.view().Rows(begin, end - begin).Columns(begin, size - begin),
                             gradients.view());
    for (size_t row = 0; row < rest.rows; ++row) {
      std::ranges::copy(gradients.view().row(row), rest.row(row).begin());
    }
    begin = end;
  }
}

void RowSolver::Descend(Work& work) const {
  const size_t size = moments_.rows();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t begin = 0; begin < size;) {
      const size_t end = BatchEnd(begin);
      Matrix steps(work.targets.rows, end - begin);
      for (size_t row = 0; row < steps.rows(); ++row) {
        DescendInBatch(row, begin, end, steps.view(), work);
      }
      // The gradients inside of the batch are up to date, and those before it are not needed after
      // the last sweep.
      const ConstMatrixView moments = std::as_const(moments_).view().Rows(begin, end - begin);
      if (sweep + 1 < kSweeps) {
        AddProduct(steps.view(), moments.Columns(0, begin), -1.0f,
                   work.gradients.view().Columns(0, begin));
      }
      AddProduct(steps.view(), moments.Columns(end, size - end), -1.0f,
                 work.gradients.view().Columns(end, size - end));
      begin = end;
    }
  }
}

void RowSolver::DescendInBatch(size_t row, size_t begin, size_t end, MatrixView steps,
                               Work& work) const {
  CodedRow& coded = work.rows[row];
  const std::span<float> gradient = work.gradients.view().row(row);
  const auto step_to = [&](size_t i, float step) {
    steps(row, i - begin) += step;
    AddScaled(moments_.view().row(i).subspan(begin, end - begin), -step,
              gradient.subspan(begin, end - begin));
  };
  for (size_t i = begin; i < end; ++i) {
    float& scale = coded.scales[i / block_size_];
    float& minimum = coded.minimums[i / block_size_];
    const size_t block_end = BlockEnd(i);
    if (BeginsBlock(i) && block_end <= end) {
      if (const std::optional<Refit> refit = RefitBlock(gradient, i, block_end, coded)) {
        const float scale_step = refit->scale - scale;
        const float minimum_step = refit->minimum - minimum;
        scale = refit->scale;
        minimum = refit->minimum;
        for (size_t j = i; j < block_end; ++j) {
          const float step = scale_step * coded.codes[j] - minimum_step;
          if (step != 0.0f) step_to(j, step);
        }
      }
    }
    const float curvature = moments_(i, i);
    const float code =
        CodeOf(coded.codes[i] * scale + gradient[i] / curvature, 1.0f / scale, rule_.range);
    const float step = (code - coded.codes[i]) * scale;
    if (step * step * curvature < 2.0f * step * gradient[i]) {
      coded.codes[i] = code;
      step_to(i, step);
    }
  }
}

std::optional<RowSolver::Refit> RowSolver::RefitBlock(std::span<const float> gradient, size_t begin,
                                                      size_t end, const CodedRow& coded) const {
  const size_t size = end - begin;
  const std::span<const float> codes = std::span(coded.codes).subspan(begin, size);
  const float scale = coded.scales[begin / block_size_];
  const float minimum = coded.minimums[begin / block_size_];
  // A step of both lowers the error by 2 * slopes * step - step * curvatures * step.
  double scale_slope = 0.0;
  double minimum_slope = 0.0;
  double mixed_curvature = 0.0;
  double minimum_curvature = 0.0;
  for (size_t j = 0; j < size; ++j) {
    scale_slope += double{gradient[begin + j]} * codes[j];
    minimum_slope -= gradient[begin + j];
    mixed_curvature -= double{block_sums_[begin + j]} * codes[j];
    minimum_curvature += block_sums_[begin + j];
  }
  const double scale_curvature =
      QuadraticForm(moments_.view().Rows(begin, size).Columns(begin, size), codes);
  const auto stored = [&](double number) { return AsStored(number, rule_.type); };
  Refit refit = {.scale = stored(scale + scale_slope / scale_curvature), .minimum = minimum};
  if (rule_.has_minimum) {
    const double determinant =
        scale_curvature * minimum_curvature - mixed_curvature * mixed_curvature;
    const double step =
        (scale_slope * minimum_curvature - minimum_slope * mixed_curvature) / determinant;
    refit.scale = stored(scale + step);
    // The best for the scale as it is stored.
    const double rest = minimum_slope - mixed_curvature * (double{refit.scale} - scale);
    refit.minimum = stored(minimum + rest / minimum_curvature);
  }
  const double scale_step = double{refit.scale} - scale;
  const double minimum_step = double{refit.minimum} - minimum;
  const double slopes = scale_step * scale_slope + minimum_step * minimum_slope;
  const double curvatures = scale_step * scale_curvature * scale_step +
                            2.0 * scale_step * mixed_curvature * minimum_step +
                            minimum_step * minimum_curvature * minimum_step;
  const bool is_sound = scale_curvature > 0.0 && std::isnormal(refit.scale) && refit.scale > 0.0f &&
                        std::isfinite(refit.minimum);
  if (!is_sound || !(curvatures < 2.0 * slopes)) return std::nullopt;
  return refit;
}

}  // namespace cria
