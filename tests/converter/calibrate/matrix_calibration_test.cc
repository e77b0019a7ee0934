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

TensorLayout LayoutOf(size_t outputs, size_t inputs, Scheme scheme = Scheme::kQb4w) {
  return MakeTensorLayout({TensorRole::kOProj, 0, outputs, inputs}, scheme, 32);
}

class MatrixCalibrationTest : public testing::Test {
 protected:
  Matrix OutputsOf(const Matrix& inputs) const {
    Matrix outputs(inputs.rows(), kOutputs);
    AddProductWithTransposed(inputs.view(), weights_.view(), outputs.view());
    return outputs;
  }

  // Moments of inputs with which the matrix has the outputs that it should have.
  InputMoments MomentsOf(const Matrix& inputs) const {
    InputMoments moments(layout_, OutputKind::kProducts);
    EXPECT_TRUE(moments.takes_inputs());
    // In two steps, as batches come.
    const Matrix lacking(inputs.rows(), kInputs);
    const size_t half = inputs.rows() / 2;
    moments.Add(threads_, inputs.view().Rows(0, half), lacking.view().Rows(0, half));
    const size_t rest = inputs.rows() - half;
    moments.Add(threads_, inputs.view().Rows(half, rest), lacking.view().Rows(half, rest));
    moments.Finish(threads_);
    return moments;
  }

  HeldBackRows HeldBack(const Matrix& inputs) const {
    HeldBackRows rows(inputs.rows(), kInputs, kOutputs, OutputKind::kProducts);
    rows.Add(inputs.view(), inputs.view(), OutputsOf(inputs).view());
    return rows;
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
  TensorLayout layout_ = LayoutOf(kOutputs, kInputs);
};

TEST_F(MatrixCalibrationTest, LosesLessThanRoundingWhereTheTextIsLikeIt) {
  const Matrix training = CorrelatedInputs(1000, kInputs, 2);
  const Matrix held_back = CorrelatedInputs(200, kInputs, 3);
  const CalibratedMatrix matrix = Unwrap(
      CalibrateMatrix(threads_, weights_, layout_, MomentsOf(training), HeldBack(held_back)));
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
      CalibrateMatrix(threads_, weights_, layout_, MomentsOf(training), HeldBack(held_back)));
  EXPECT_FALSE(matrix.is_calibrated);
  EXPECT_EQ(matrix.held_back_ratio, 1.0);
  const Matrix rounded = Rounded();
  for (size_t i = 0; i < kOutputs; ++i) {
    for (size_t j = 0; j < kInputs; ++j) ASSERT_EQ(matrix.values(i, j), rounded(i, j));
  }
}

// As if a matrix with each part of the inputs were calibrated by itself.
TEST(MatrixCalibration, PartsOfManyInputsAreSolvedByThemselves) {
  constexpr size_t kManyInputs = 2400;
  constexpr size_t kRows = 300;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  const Matrix weights = RandomMatrix(3, kManyInputs, 1);
  const Matrix inputs = RandomMatrix(kRows, kManyInputs, 2);
  const Matrix lacking = RandomMatrix(kRows, 3, 3);
  for (const Scheme scheme : {Scheme::kQb4w, Scheme::kW4G64, Scheme::kW3G64}) {
    const auto calibrate = [&](size_t first, size_t count) {
      const auto columns_of = [&](const Matrix& matrix) {
        Matrix columns(matrix.rows(), count);
        for (size_t row = 0; row < matrix.rows(); ++row) {
          std::ranges::copy(matrix.view().row(row).subspan(first, count),
                            columns.view().row(row).begin());
        }
        return columns;
      };
      const TensorLayout layout = LayoutOf(3, count, scheme);
      const Matrix part_inputs = columns_of(inputs);
      InputMoments training(layout, OutputKind::kProducts);
      training.Add(threads, part_inputs.view(), lacking.view());
      training.Finish(threads);
      // They are the same rows, so that solving is better than rounding.
      HeldBackRows held_back(kRows, count, 3, OutputKind::kProducts);
      Matrix part_outputs = lacking;
      const Matrix part_weights = columns_of(weights);
      AddProductWithTransposed(part_inputs.view(), part_weights.view(), part_outputs.view());
      held_back.Add(part_inputs.view(), part_inputs.view(), part_outputs.view());
      CalibratedMatrix matrix =
          Unwrap(CalibrateMatrix(threads, part_weights, layout, std::move(training), held_back));
      EXPECT_TRUE(matrix.is_calibrated);
      // The bytes are those of the values.
      const RowQuantizer quantizer(layout);
      std::vector<float> row(layout.padded_input_channels);
      const size_t row_bytes = layout.row_bytes();
      const size_t scale_bytes = layout.row_scale_bytes();
      for (size_t i = 0; i < 3; ++i) {
        quantizer.Dequantize(std::span(matrix.data).subspan(i * row_bytes, row_bytes),
                             std::span(matrix.scales).subspan(i * scale_bytes, scale_bytes), row);
        for (size_t j = 0; j < count; ++j) EXPECT_EQ(row[j], matrix.values(i, j));
      }
      return std::move(matrix.values);
    };
    const Matrix whole = calibrate(0, kManyInputs);
    constexpr size_t kFirst = 1280;
    const Matrix first = calibrate(0, kFirst);
    const Matrix second = calibrate(kFirst, kManyInputs - kFirst);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t i = 0; i < kManyInputs; ++i) {
        ASSERT_EQ(whole(row, i), i < kFirst ? first(row, i) : second(row, i - kFirst));
      }
    }
  }
}

}  // namespace
}  // namespace cria
