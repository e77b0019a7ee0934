#include "converter/calibrate/held_back_rows.h"

#include <gtest/gtest.h>

#include "converter/calibrate/linear_algebra.h"
#include "random_matrix.h"

namespace cria {
namespace {

constexpr size_t kRowInputs = 96;

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
  const Matrix inputs = RandomMatrix(5, kRowInputs, 1);
  const Matrix exact_inputs = RandomMatrix(5, kRowInputs, 2);
  const Matrix weights = RandomMatrix(3, kRowInputs, 3);
  HeldBackRows rows(5, kRowInputs, 1000, OutputKind::kUnknownProducts);
  rows.Add(inputs.view(), exact_inputs.view(), {});
  Matrix expected(5, 3);
  AddProductWithTransposed(exact_inputs.view(), weights.view(), expected.view());
  const Matrix outputs = rows.OutputsOf(weights.view(), 0);
  for (size_t i = 0; i < expected.values().size(); ++i) {
    EXPECT_EQ(outputs.values()[i], expected.values()[i]);
  }
}

}  // namespace
}  // namespace cria
