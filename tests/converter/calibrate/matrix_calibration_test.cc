#include "converter/calibrate/matrix_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "converter/calibrate/linear_algebra.h"
#include "converter/calibrate/row_solver.h"
#include "random_matrix.h"
#include "support/unwrap.h"

namespace cria {
namespace {

constexpr size_t kInputs = 96;
// More than one group of rows.
constexpr size_t kOutputs = RowSolver::RowsAtOnce(100) + 6;

class MatrixCalibrationTest : public testing::Test {
 protected:
  // Moments of inputs and of the outputs that the matrix has with them.
  InputMoments MomentsOf(const Matrix& inputs) const {
    Matrix outputs(inputs.rows(), kOutputs);
    AddProductWithTransposed(inputs.view(), weights_.view(), outputs.view());
    InputMoments moments(kInputs, kOutputs, OutputKind::kProducts);
    // In two steps, as batches come.
    const size_t half = inputs.rows() / 2;
    const auto add = [&](size_t first, size_t count) {
      const ConstMatrixView rows = inputs.view().Rows(first, count);
      moments.Add(threads_, rows, rows, outputs.view().Rows(first, count));
    };
    add(0, half);
    add(half, inputs.rows() - half);
    moments.Finish();
    return moments;
  }

  // The mean squared error of the outputs.
  double ErrorOf(const Matrix& values, const Matrix& inputs) const {
    Matrix difference = values;
    for (size_t i = 0; i < difference.values().size(); ++i) {
      difference.values()[i] -= weights_.values()[i];
    }
    Matrix outputs(inputs.rows(), kOutputs);
    AddProductWithTransposed(inputs.view(), difference.view(), outputs.view());
    double error = 0.0;
    for (const float value : outputs.values()) error += double{value} * value;
    return error / static_cast<double>(inputs.rows());
  }

  Matrix Rounded() const {
    RowQuantizer quantizer(layout_);
    Matrix rounded = weights_;
    std::vector<std::byte> data(layout_.row_bytes());
    std::vector<std::byte> scales(layout_.row_scale_bytes());
    for (size_t i = 0; i < kOutputs; ++i) {
      quantizer.Quantize(rounded.view().row(i), data, scales);
      quantizer.Dequantize(data, scales, rounded.view().row(i));
    }
    return rounded;
  }

  ThreadPool threads_ = Unwrap(ThreadPool::Create(2));
  Matrix weights_ = RandomMatrix(kOutputs, kInputs, 1);
  TensorLayout layout_ =
      MakeTensorLayout({TensorRole::kOProj, 0, kOutputs, kInputs}, Scheme::kQb4w, 32);
};

// With fewer outputs than inputs, and with more, which are products or others.
TEST(InputMomentsTest, AreMeans) {
  constexpr size_t kRows = 31;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  const Matrix inputs = CorrelatedInputs(kRows, kInputs, 2);
  const Matrix exact_inputs = CorrelatedInputs(kRows, kInputs, 3);
  using enum OutputKind;
  for (const auto& [num_outputs, output_kind] : std::vector<std::pair<size_t, OutputKind>>{
           {40, kProducts}, {kOutputs, kProducts}, {40, kOthers}, {kOutputs, kOthers}}) {
    const Matrix weights = RandomMatrix(num_outputs, kInputs, 1);
    Matrix outputs(kRows, num_outputs);
    AddProductWithTransposed(exact_inputs.view(), weights.view(), outputs.view());
    if (output_kind == kOthers) {
      const Matrix others = RandomMatrix(kRows, num_outputs, 4);
      for (size_t i = 0; i < others.values().size(); ++i) {
        outputs.values()[i] += others.values()[i];
      }
    }
    InputMoments moments(kInputs, num_outputs, output_kind);
    moments.Add(threads, inputs.view(), exact_inputs.view(), outputs.view());
    moments.Finish();
    const Matrix mean_outputs = moments.OutputsOf(std::as_const(weights).view(), 0);
    EXPECT_EQ(moments.num_rows(), kRows);
    ASSERT_EQ(mean_outputs.rows(), num_outputs);
    for (const auto& [i, j] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {3, 95}, {39, 3}}) {
      double of_inputs = 0.0;
      double of_outputs = 0.0;
      double of_squares = 0.0;
      for (size_t row = 0; row < kRows; ++row) {
        of_inputs += double{inputs(row, i)} * inputs(row, j) / kRows;
        of_outputs += double{outputs(row, i)} * inputs(row, j) / kRows;
        for (const float output : outputs.view().row(row)) {
          of_squares += double{output} * output / kRows;
        }
      }
      EXPECT_NEAR(moments.inputs()(i, j), of_inputs, 1e-3);
      EXPECT_NEAR(mean_outputs(i, j), of_outputs, 1e-2);
      EXPECT_NEAR(std::ranges::fold_left(moments.output_squares(), 0.0, std::plus()), of_squares,
                  1e-6 * of_squares);
    }
  }
}

TEST_F(MatrixCalibrationTest, LosesLessThanRoundingWhereTheTextIsLikeIt) {
  const Matrix training = CorrelatedInputs(1000, kInputs, 2);
  const Matrix held_back = CorrelatedInputs(200, kInputs, 3);
  const CalibratedMatrix matrix = Unwrap(
      CalibrateMatrix(threads_, weights_, layout_, MomentsOf(training), MomentsOf(held_back)));
  EXPECT_TRUE(matrix.is_calibrated);
  const double ratio = ErrorOf(matrix.values, held_back) / ErrorOf(Rounded(), held_back);
  EXPECT_LT(ratio, 0.8);
  EXPECT_NEAR(matrix.held_back_ratio, ratio, 0.01);
  // The bytes are those of the values.
  RowQuantizer quantizer(layout_);
  std::vector<float> row(kInputs);
  quantizer.Dequantize(std::span(matrix.data).first(layout_.row_bytes()),
                       std::span(matrix.scales).first(layout_.row_scale_bytes()), row);
  for (size_t i = 0; i < kInputs; ++i) EXPECT_EQ(row[i], matrix.values(0, i));
}

TEST_F(MatrixCalibrationTest, RoundsWhereThatIsBetterForTextThatWasHeldBack) {
  // A few rows that say nothing of other inputs.
  Matrix training(40, kInputs);
  for (size_t row = 0; row < 40; ++row) {
    for (size_t i = 0; i < kInputs; ++i) training(row, i) = i < 3 ? 50.0f : 0.01f;
  }
  const Matrix held_back = RandomMatrix(500, kInputs, 4);
  const CalibratedMatrix matrix = Unwrap(
      CalibrateMatrix(threads_, weights_, layout_, MomentsOf(training), MomentsOf(held_back)));
  EXPECT_FALSE(matrix.is_calibrated);
  EXPECT_EQ(matrix.held_back_ratio, 1.0);
  const Matrix rounded = Rounded();
  for (size_t i = 0; i < kOutputs; ++i) {
    for (size_t j = 0; j < kInputs; ++j) ASSERT_EQ(matrix.values(i, j), rounded(i, j));
  }
}

}  // namespace
}  // namespace cria
