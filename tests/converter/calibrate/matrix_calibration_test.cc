#include "converter/calibrate/matrix_calibration.h"

#include <gtest/gtest.h>

#include <vector>

#include "converter/calibrate/linear_algebra.h"
#include "random_matrix.h"
#include "support/unwrap.h"

namespace cria {
namespace {

constexpr size_t kInputs = 96;
constexpr size_t kOutputs = 70;  // More than one group of rows.

class MatrixCalibrationTest : public testing::Test {
 protected:
  // Moments of inputs and of the outputs that the matrix has with them.
  InputMoments MomentsOf(const Matrix& inputs) const {
    Matrix outputs(inputs.rows(), kOutputs);
    AddProductWithTransposed(inputs.view(), weights_.view(), outputs.view());
    InputMoments moments(kInputs, kOutputs);
    // In two steps, as batches come.
    const size_t half = inputs.rows() / 2;
    moments.Add(threads_, inputs.view().Rows(0, half), outputs.view().Rows(0, half));
    moments.Add(threads_, inputs.view().Rows(half, inputs.rows() - half),
                outputs.view().Rows(half, inputs.rows() - half));
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

TEST_F(MatrixCalibrationTest, MomentsAreMeans) {
  const Matrix inputs = CorrelatedInputs(31, kInputs, 2);
  const InputMoments moments = MomentsOf(inputs);
  EXPECT_EQ(moments.num_rows(), 31);
  for (const auto& [i, j] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {3, 95}, {95, 3}}) {
    double of_inputs = 0.0;
    double of_outputs = 0.0;
    for (size_t row = 0; row < 31; ++row) {
      double output = 0.0;
      for (size_t k = 0; k < kInputs; ++k) output += double{weights_(i % 70, k)} * inputs(row, k);
      of_inputs += double{inputs(row, i)} * inputs(row, j) / 31;
      of_outputs += output * inputs(row, j) / 31;
    }
    EXPECT_NEAR(moments.inputs()(i, j), of_inputs, 1e-3);
    EXPECT_NEAR(moments.outputs()(i % 70, j), of_outputs, 1e-2);
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
