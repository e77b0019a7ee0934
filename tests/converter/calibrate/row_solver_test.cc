// The solver against plain rounding, and against GPTQ as its paper writes it.

#include "converter/calibrate/row_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "converter/calibrate/linear_algebra.h"
#include "random_matrix.h"
#include "support/emulation.h"
#include "support/sanitizers.h"
#include "support/unwrap.h"

namespace cria {
namespace {

TensorLayout LayoutOf(Scheme scheme, size_t rows, size_t columns, size_t block_size = 32) {
  const TensorSpec spec = {TensorRole::kOProj, 0, rows, columns};
  return MakeTensorLayout(spec, scheme, block_size);
}

Matrix MomentsOf(const Matrix& inputs) {
  Matrix moments(inputs.columns(), inputs.columns());
  AddTransposedProduct(inputs.view(), inputs.view(), moments.view());
  for (float& value : moments.values()) value /= static_cast<float>(inputs.rows());
  return moments;
}

// The moments as the solver sees them.
Matrix Damped(Matrix moments) {
  double trace = 0.0;
  for (size_t i = 0; i < moments.rows(); ++i) trace += moments(i, i);
  for (size_t i = 0; i < moments.rows(); ++i) {
    for (size_t j = 0; j < moments.rows(); ++j) {
      if (j != i) moments(i, j) *= 0.5f;
    }
    moments(i, i) += static_cast<float>(0.02 * trace / static_cast<double>(moments.rows()));
  }
  return moments;
}

size_t BlockOf(const TensorLayout& layout, size_t column) {
  if (layout.scheme == Scheme::kQb4w) return column / layout.block_size;
  return layout.block_format() != nullptr ? column / layout.block_format()->inputs : 0;
}

std::vector<float> ValuesOf(const CodedRow& row, const TensorLayout& layout) {
  std::vector<float> values(layout.input_channels);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t block = BlockOf(layout, i);
    values[i] = row.codes[i] * row.scales[block] - row.minimums[block];
  }
  return values;
}

double ErrorOf(const std::vector<float>& values, std::span<const float> target,
               const Matrix& moments) {
  double error = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    double product = 0.0;
    for (size_t j = 0; j < values.size(); ++j) {
      product += (double{target[j]} - values[j]) * moments(j, i);
    }
    error += product * (double{target[i]} - values[i]);
  }
  return error;
}

std::vector<float> Rounded(std::span<const float> target, const TensorLayout& layout) {
  RowQuantizer quantizer(layout);
  std::vector<float> row(layout.padded_input_channels);
  std::ranges::copy(target, row.begin());
  std::vector<std::byte> data(layout.row_bytes());
  std::vector<std::byte> scales(layout.row_scale_bytes());
  quantizer.Quantize(row, data, scales);
  quantizer.Dequantize(data, scales, row);
  row.resize(layout.input_channels);
  return row;
}

// Frantar et al. 2022, without batches: after each weight, the rest is updated with the inverse of
// the moments of the columns that are left, from which one is eliminated at a time.
std::vector<float> PaperGptq(std::span<const float> target, const Matrix& damped,
                             const TensorLayout& layout) {
  const size_t size = target.size();
  // Gauss and Jordan's inverse, in double.
  std::vector<std::vector<double>> inverse(size, std::vector<double>(size));
  std::vector<std::vector<double>> left(size, std::vector<double>(size));
  for (size_t i = 0; i < size; ++i) {
    inverse[i][i] = 1.0;
    for (size_t j = 0; j < size; ++j) left[i][j] = damped(i, j);
  }
  for (size_t i = 0; i < size; ++i) {
    const double pivot = left[i][i];
    for (size_t j = 0; j < size; ++j) left[i][j] /= pivot, inverse[i][j] /= pivot;
    for (size_t k = 0; k < size; ++k) {
      const double factor = left[k][i];
      if (k == i || factor == 0.0) continue;
      for (size_t j = 0; j < size; ++j) {
        left[k][j] -= factor * left[i][j];
        inverse[k][j] -= factor * inverse[i][j];
      }
    }
  }
  const ScaleRule rule = ScaleRuleOf(layout.scheme);
  std::vector<double> wanted(target.begin(), target.end());
  std::vector<float> values(size);
  std::vector<float> scratch(ScaleSearchScratch(layout.padded_input_channels));
  ScaleFit fit;
  for (size_t i = 0; i < size; ++i) {
    if (i == 0 || BlockOf(layout, i) != BlockOf(layout, i - 1)) {
      size_t end = i;
      while (end < size && BlockOf(layout, end) == BlockOf(layout, i)) ++end;
      const std::vector<float> block(wanted.begin() + static_cast<ptrdiff_t>(i),
                                     wanted.begin() + static_cast<ptrdiff_t>(end));
      fit = SearchScale(block, rule, scratch);
    }
    const auto code =
        CodeOf(static_cast<float>(wanted[i]) + fit.minimum, 1.0f / fit.scale, rule.range);
    values[i] = fit.scale * code - fit.minimum;
    const double error = (wanted[i] - values[i]) / inverse[i][i];
    for (size_t j = i; j < size; ++j) wanted[j] -= error * inverse[i][j];
    // Eliminates the column from the inverse.
    for (size_t j = i + 1; j < size; ++j) {
      const double factor = inverse[j][i] / inverse[i][i];
      for (size_t k = i + 1; k < size; ++k) inverse[j][k] -= factor * inverse[i][k];
    }
  }
  return values;
}

struct SolverCase {
  Scheme scheme;
  size_t columns;
  size_t block_size = 32;
  // What GPTQ loses in relation to rounding, at most. With fewer bits or inputs, it gains less.
  double gptq_part = 0.8;
};
constexpr SolverCase kCases[] = {{Scheme::kQb4w, 64, 32, 0.86}, {Scheme::kQb4w, 172},
                                 {Scheme::kQb4w, 512, 256},     {Scheme::kQc8w, 150},
                                 {Scheme::kW4G64, 172},         {Scheme::kW3G64, 128, 32, 0.9},
                                 {Scheme::kW2G64, 64, 32, 0.95}};

Result<RowSolver> CreateSolver(Matrix moments, const TensorLayout& layout) {
  return RowSolver::Create(Unwrap(ThreadPool::Create(2)), std::move(moments), layout);
}

TEST(RowSolver, LosesLessThanRoundingAndThanGptqAlone) {
  for (const auto& [scheme, columns, block_size, gptq_part] : kCases) {
    const bool is_slow = support::IsEmulated() || support::kHeapIsSanitized;
    if (is_slow && columns > 200) continue;
    SCOPED_TRACE(columns);
    const Matrix targets = RandomMatrix(6, columns, 1);
    const Matrix damped = Damped(MomentsOf(CorrelatedInputs(4 * columns, columns, 2)));
    const TensorLayout layout = LayoutOf(scheme, targets.rows(), columns, block_size);
    const RowSolver solver =
        Unwrap(CreateSolver(MomentsOf(CorrelatedInputs(4 * columns, columns, 2)), layout));
    const std::vector<CodedRow> rows = solver.Solve(targets.view());
    double solved = 0.0;
    double gptq = 0.0;
    double rounded = 0.0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto target = targets.view().row(i);
      solved += ErrorOf(ValuesOf(rows[i], layout), target, damped);
      gptq += ErrorOf(PaperGptq(target, damped, layout), target, damped);
      rounded += ErrorOf(Rounded(target, layout), target, damped);
    }
    EXPECT_LT(gptq, gptq_part * rounded);
    EXPECT_LT(solved, gptq);
    // Descent adds something to GPTQ, but does not replace it.
    EXPECT_GT(solved, 0.7 * gptq);
  }
}

TEST(RowSolver, CodesAndScalesAreThoseOfTheScheme) {
  for (const auto& [scheme, columns, block_size, gptq_part] : kCases) {
    const TensorLayout layout = LayoutOf(scheme, 4, columns, block_size);
    const RowSolver solver =
        Unwrap(CreateSolver(MomentsOf(CorrelatedInputs(2 * columns, columns, 2)), layout));
    const CodeRange range = ScaleRuleOf(scheme).range;
    for (const CodedRow& row : solver.Solve(RandomMatrix(4, columns, 3).view())) {
      ASSERT_EQ(row.codes.size(), layout.padded_input_channels);
      const size_t num_blocks = BlockOf(layout, layout.padded_input_channels - 1) + 1;
      ASSERT_EQ(row.scales.size(), num_blocks);
      ASSERT_EQ(row.minimums.size(), num_blocks);
      for (size_t i = 0; i < row.codes.size(); ++i) {
        EXPECT_EQ(row.codes[i], std::round(row.codes[i]));
        EXPECT_GE(row.codes[i], range.min);
        EXPECT_LE(row.codes[i], range.max);
        if (i >= columns) {
          EXPECT_EQ(row.codes[i], 0.0f);
        }
      }
      // They are stored and read back exactly.
      RowQuantizer quantizer(layout);
      std::vector<std::byte> data(layout.row_bytes());
      std::vector<std::byte> scales(layout.row_scale_bytes());
      quantizer.Store(row, data, scales);
      std::vector<float> stored(layout.padded_input_channels);
      quantizer.Dequantize(data, scales, stored);
      stored.resize(columns);
      EXPECT_EQ(stored, ValuesOf(row, layout));
    }
  }
}

TEST(RowSolver, ARowDependsOnNoOther) {
  const TensorLayout layout = LayoutOf(Scheme::kQb4w, 40, 172);
  const Matrix targets = RandomMatrix(40, 172, 1);
  const RowSolver solver = Unwrap(CreateSolver(MomentsOf(CorrelatedInputs(300, 172, 2)), layout));
  const std::vector<CodedRow> together = solver.Solve(targets.view());
  for (const size_t i : {0, 17, 39}) {
    const std::vector<CodedRow> alone = solver.Solve(targets.view().Rows(i, 1));
    EXPECT_EQ(alone[0].codes, together[i].codes);
    EXPECT_EQ(alone[0].scales, together[i].scales);
    EXPECT_EQ(alone[0].minimums, together[i].minimums);
  }
}

TEST(RowSolver, WithoutInputsItRounds) {
  const TensorLayout layout = LayoutOf(Scheme::kQb4w, 2, 64);
  const Matrix targets = RandomMatrix(2, 64, 1);
  const RowSolver solver = Unwrap(CreateSolver(Matrix(64, 64), layout));
  const std::vector<CodedRow> rows = solver.Solve(targets.view());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(ValuesOf(rows[i], layout), Rounded(targets.view().row(i), layout));
  }
}

TEST(RowSolver, ZerosStayZeros) {
  for (const auto& [scheme, columns, block_size, gptq_part] : kCases) {
    const TensorLayout layout = LayoutOf(scheme, 1, columns, block_size);
    const RowSolver solver =
        Unwrap(CreateSolver(MomentsOf(CorrelatedInputs(200, columns, 2)), layout));
    const CodedRow row = solver.Solve(Matrix(1, columns).view()).front();
    for (const float code : row.codes) EXPECT_EQ(code, 0.0f);
    for (const float minimum : row.minimums) EXPECT_EQ(minimum, 0.0f);
    for (const float scale : row.scales) EXPECT_TRUE(std::isnormal(scale) && scale > 0.0f);
  }
}

TEST(RowSolver, CorrectsHalfOfWhatRoundedInputsLose) {
  constexpr size_t kColumns = 48;
  constexpr size_t kRows = 4000;
  const Matrix weights = RandomMatrix(3, kColumns, 1);
  const Matrix inputs = CorrelatedInputs(kRows, kColumns, 2);
  // What the matrix gets has 1.25 times the size of what it should get, so 0.8 of each weight would
  // make up for it, but for the damping and the shrinkage.
  Matrix larger = inputs;
  for (float& value : larger.values()) value *= 1.25f;
  const Matrix lacking_inputs = Difference(inputs, larger);
  Matrix of_inputs(kColumns, kColumns);
  AddTransposedProduct(lacking_inputs.view(), larger.view(), of_inputs.view());
  for (float& value : of_inputs.values()) value /= kRows;
  Matrix of_outputs(3, kColumns);
  AddProduct(weights.view(), std::as_const(of_inputs).view(), 1.0f, of_outputs.view());

  const TensorLayout layout = LayoutOf(Scheme::kQb4w, 3, kColumns);
  const RowSolver solver = Unwrap(CreateSolver(MomentsOf(larger), layout));
  Matrix corrected = weights;
  solver.Correct(of_outputs.view(), corrected.view());
  double inner = 0.0;
  double squares = 0.0;
  for (size_t i = 0; i < weights.values().size(); ++i) {
    inner += double{weights.values()[i]} * corrected.values()[i];
    squares += double{weights.values()[i]} * weights.values()[i];
  }
  EXPECT_GT(inner / squares, 0.89);
  EXPECT_LT(inner / squares, 0.96);

  // One matrix does the same for all rows.
  Matrix by_product = weights;
  const Matrix correction =
      solver.CorrectionOfProducts(Unwrap(ThreadPool::Create(2)), std::move(of_inputs));
  AddProduct(weights.view(), correction.view(), 1.0f, by_product.view());
  for (size_t i = 0; i < weights.values().size(); ++i) {
    EXPECT_NEAR(by_product.values()[i], corrected.values()[i], 1e-5);
  }

  // Outputs that lack nothing leave the weights as they are.
  corrected = weights;
  solver.Correct(Matrix(3, kColumns).view(), corrected.view());
  for (size_t i = 0; i < weights.values().size(); ++i) {
    EXPECT_EQ(corrected.values()[i], weights.values()[i]);
  }
}

TEST(RowSolver, RefusesMomentsThatAreNotFinite) {
  for (const float wrong : {std::numeric_limits<float>::infinity(), NAN}) {
    Matrix moments = MomentsOf(CorrelatedInputs(100, 32, 1));
    moments(3, 3) = wrong;
    const auto solver = CreateSolver(std::move(moments), LayoutOf(Scheme::kQb4w, 1, 32));
    ASSERT_FALSE(solver);
    EXPECT_EQ(solver.error().code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace cria
