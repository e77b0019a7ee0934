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

// With fewer outputs than inputs, and with more, which are products or others.
TEST(InputMomentsTest, AreMeans) {
  constexpr size_t kRows = 31;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  const Matrix inputs = CorrelatedInputs(kRows, kInputs, 2);
  using enum OutputKind;
  struct Case {
    size_t num_outputs;
    OutputKind output_kind;
    bool takes_inputs;
  };
  for (const auto& [num_outputs, output_kind, takes_inputs] :
       {Case{40, kProducts, false}, Case{kOutputs, kProducts, true}, Case{40, kOthers, false},
        Case{kOutputs, kOthers, false}, Case{40, kUnknownProducts, true}}) {
    InputMoments moments(LayoutOf(num_outputs, kInputs), output_kind);
    EXPECT_EQ(moments.takes_inputs(), takes_inputs);
    const Matrix lacking = RandomMatrix(kRows, takes_inputs ? kInputs : num_outputs, 4);
    moments.Add(threads, inputs.view(), lacking.view());
    moments.Finish(threads);
    EXPECT_EQ(moments.num_rows(), kRows);
    ASSERT_EQ(moments.parts().size(), 1);
    ASSERT_EQ(moments.lacking().rows(), lacking.columns());
    for (const auto& [i, j] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {3, 95}, {39, 3}}) {
      double of_inputs = 0.0;
      double of_lacking = 0.0;
      for (size_t row = 0; row < kRows; ++row) {
        of_inputs += double{inputs(row, i)} * inputs(row, j) / kRows;
        of_lacking += double{lacking(row, i)} * inputs(row, j) / kRows;
      }
      EXPECT_NEAR(moments.parts()[0].moments(i, j), of_inputs, 1e-3);
      EXPECT_NEAR(moments.lacking()(i, j), of_lacking, 1e-3);
    }
  }
}

TEST(InputMomentsTest, ManyInputsAreTakenInParts) {
  constexpr size_t kManyInputs = 4400;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  const Matrix inputs = RandomMatrix(3, kManyInputs, 2);
  InputMoments moments(LayoutOf(2, kManyInputs), OutputKind::kProducts);
  moments.Add(threads, inputs.view(), RandomMatrix(3, 2, 3).view());
  moments.Finish(threads);
  ASSERT_EQ(moments.parts().size(), 3);
  size_t first = 0;
  for (const InputPart& part : moments.parts()) {
    EXPECT_EQ(part.first, first);
    EXPECT_EQ(part.first % 256, 0);
    ASSERT_EQ(part.moments.rows(), part.count);
    for (const auto& [i, j] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {7, 900}, {1000, 2}}) {
      double mean = 0.0;
      for (size_t row = 0; row < inputs.rows(); ++row) {
        mean += double{inputs(row, first + i)} * inputs(row, first + j) / 3.0;
      }
      EXPECT_NEAR(part.moments(i, j), mean, 1e-5);
    }
    first += part.count;
  }
  EXPECT_EQ(first, kManyInputs);
  // A row of qc8w has one scale, so its inputs are not taken apart.
  const TensorLayout qc8w = LayoutOf(2, kManyInputs, Scheme::kQc8w);
  EXPECT_EQ(InputMoments(qc8w, OutputKind::kProducts).parts().size(), 1);
}

TEST(HeldBackRowsTest, KeepSomeOfManyRowsAndOutputs) {
  // Every third row, and every second output.
  constexpr size_t kRows = 5000;
  constexpr size_t kManyOutputs = 600;
  Matrix inputs(kRows, 2);
  Matrix outputs(kRows, kManyOutputs);
  for (size_t row = 0; row < kRows; ++row) {
    inputs(row, 1) = static_cast<float>(row);
    for (size_t i = 0; i < kManyOutputs; ++i) outputs(row, i) = static_cast<float>(row + 10000 * i);
  }
  ASSERT_EQ(HeldBackRows::JudgedStep(kManyOutputs), 2);
  HeldBackRows rows(kRows, 2, kManyOutputs, OutputKind::kProducts);
  // In two steps, as batches come.
  const auto add = [&](size_t first, size_t count) {
    rows.Add(inputs.view().Rows(first, count), inputs.view().Rows(first, count),
             outputs.view().Rows(first, count));
  };
  add(0, 1000);
  add(1000, 4000);
  ASSERT_EQ(rows.inputs().rows(), 1667);
  const Matrix judged = rows.OutputsOf(RandomMatrix(3, 2, 1).view(), 4);
  for (size_t row = 0; row < rows.inputs().rows(); ++row) {
    EXPECT_EQ(rows.inputs()(row, 1), static_cast<float>(3 * row));
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(judged(row, i), outputs(3 * row, 4 + 2 * i));
  }
}

TEST(HeldBackRowsTest, ComputeOutputsThatAreNotGiven) {
  const Matrix inputs = RandomMatrix(5, kInputs, 1);
  const Matrix exact_inputs = RandomMatrix(5, kInputs, 2);
  const Matrix weights = RandomMatrix(3, kInputs, 3);
  HeldBackRows rows(5, kInputs, 1000, OutputKind::kUnknownProducts);
  rows.Add(inputs.view(), exact_inputs.view(), {});
  Matrix expected(5, 3);
  AddProductWithTransposed(exact_inputs.view(), weights.view(), expected.view());
  const Matrix outputs = rows.OutputsOf(weights.view(), 0);
  for (size_t i = 0; i < expected.values().size(); ++i) {
    EXPECT_EQ(outputs.values()[i], expected.values()[i]);
  }
}

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
  Matrix outputs = lacking;
  AddProductWithTransposed(inputs.view(), weights.view(), outputs.view());
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
