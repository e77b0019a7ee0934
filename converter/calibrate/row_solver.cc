#include "converter/calibrate/row_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "converter/calibrate/linear_algebra.h"
#include "core/numeric.h"

namespace cria {
namespace {

// What is added to the diagonal of the moments, as a part of its mean, because a text shows fewer
// inputs than a model meets.
constexpr double kDamping = 0.05;
constexpr int kSweeps = 3;
// Columns between two products with all others.
constexpr size_t kBatchColumns = 128;

}  // namespace

// The state of the rows that are solved together; each matrix is [count, n].
struct RowSolver::Work {
  ConstMatrixView targets;
  Matrix errors;     // Targets minus the values of the codes.
  Matrix gradients;  // Of the squared error, halved: errors * moments.
  std::vector<CodedRow> rows;
  std::vector<float> scratch;
};

RowSolver::RowSolver(Matrix moments, const TensorLayout& layout)
    : layout_(layout),
      rule_(ScaleRuleOf(layout.scheme)),
      moments_(std::move(moments)),
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
  solver.damping_ = static_cast<float>(mean > 0.0 ? kDamping * mean : 1.0);
  for (size_t i = 0; i < damped.rows(); ++i) damped(i, i) += solver.damping_;
  if (!std::isfinite(trace) ||
      !FactorizeUpper(threads, damped.view(), solver.u_.view(), solver.pivots_)) {
    return Fail(ErrorCode::kUnsupported,
                "the activations of the calibration text are out of the range of f32");
  }
  return solver;
}

size_t RowSolver::BatchEnd(size_t begin) const {
  return std::min(begin + std::max(kBatchColumns, layout_.block_size), moments_.rows());
}

size_t RowSolver::BlockEnd(size_t begin) const {
  const size_t size = layout_.scheme == Scheme::kQb4w ? layout_.block_size : moments_.rows();
  return std::min((begin / size + 1) * size, moments_.rows());
}

void RowSolver::Correct(ConstMatrixView outputs, MatrixView rows) const {
  constexpr float kPart = 0.5f;
  // outputs - rows * moments without their damping.
  Matrix missing(rows.rows, rows.columns);
  for (size_t row = 0; row < rows.rows; ++row) {
    for (size_t i = 0; i < rows.columns; ++i) {
      missing(row, i) = outputs(row, i) + damping_ * rows(row, i);
    }
  }
  AddProduct(rows, moments_.view(), -1.0f, missing.view());
  DivideByFactorized(u_.view(), pivots_, missing.view());
  for (size_t row = 0; row < rows.rows; ++row) {
    for (size_t i = 0; i < rows.columns; ++i) rows(row, i) += kPart * missing(row, i);
  }
}

std::vector<CodedRow> RowSolver::Solve(ConstMatrixView targets) const {
  Work work = {.targets = targets,
               .errors = Matrix(targets.rows, targets.columns),
               .gradients = Matrix(targets.rows, targets.columns),
               .rows = std::vector<CodedRow>(targets.rows,
                                             {std::vector<float>(layout_.padded_input_channels),
                                              std::vector<float>(layout_.scales_per_row(), 1.0f)}),
               .scratch = std::vector<float>(ScaleSearchScratch(layout_.padded_input_channels))};
  RoundInOrder(work);
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
  float scale = coded.scales.front();
  for (size_t i = begin; i < end; ++i) {
    const size_t block = layout_.scheme == Scheme::kQb4w ? i / layout_.block_size : 0;
    if (i == 0 || BlockEnd(i) != BlockEnd(i - 1)) {
      const size_t block_size = BlockEnd(i) - i;
      const bool is_in_batch = i + block_size <= end;
      const std::span<const float> searched =
          is_in_batch ? std::span<const float>(values).subspan(i - begin, block_size)
                      : work.targets.row(row).subspan(i, block_size);
      scale = coded.scales[block] = SearchScale(searched, rule_, work.scratch).scale;
    }
    const float code = CodeOf(values[i - begin], 1.0f / scale, rule_.range);
    const float error = work.targets(row, i) - code * scale;
    coded.codes[i] = code;
    work.errors(row, i) = error;
    AddScaled(u_.view().row(i).subspan(i + 1, end - i - 1), error, values.subspan(i + 1 - begin));
  }
}

void RowSolver::Descend(Work& work) const {
  const size_t size = moments_.rows();
  AddProduct(work.errors.view(), moments_.view(), 1.0f, work.gradients.view());
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
    const size_t block = layout_.scheme == Scheme::kQb4w ? i / layout_.block_size : 0;
    float& scale = coded.scales[block];
    const size_t block_end = BlockEnd(i);
    const bool begins_block = i == 0 || BlockEnd(i - 1) != block_end;
    if (begins_block && block_end <= end) {
      // The best scale for these codes is scale + slope / curvature.
      const size_t size = block_end - i;
      double slope = 0.0;
      for (size_t j = i; j < block_end; ++j) slope += double{gradient[j]} * coded.codes[j];
      const double curvature = QuadraticForm(moments_.view().Rows(i, size).Columns(i, size),
                                             std::span(coded.codes).subspan(i, size));
      auto refitted = static_cast<float>(scale + slope / curvature);
      if (rule_.type == ScaleType::kBf16) refitted = Bf16ToFloat(FloatToBf16(refitted));
      const double step = double{refitted} - scale;
      if (curvature > 0.0 && std::isnormal(refitted) && refitted > 0.0f &&
          step * curvature * step < 2.0 * step * slope) {
        scale = refitted;
        for (size_t j = i; j < block_end; ++j) {
          if (coded.codes[j] != 0.0f) step_to(j, static_cast<float>(step) * coded.codes[j]);
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

}  // namespace cria
