#include "converter/calibrate/input_moments.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "random_matrix.h"
#include "support/unwrap.h"

namespace cria {
namespace {

constexpr size_t kMomentInputs = 96;
constexpr size_t kMomentOutputs = 102;

TensorLayout LayoutOfMatrix(size_t outputs, size_t inputs, Scheme scheme = Scheme::kQb4w) {
  return MakeTensorLayout({TensorRole::kOProj, 0, outputs, inputs}, scheme, 32);
}

// With fewer outputs than inputs, and with more, which are products or others.
TEST(InputMomentsTest, AreMeans) {
  constexpr size_t kRows = 31;
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  const Matrix inputs = CorrelatedInputs(kRows, kMomentInputs, 2);
  using enum OutputKind;
  struct Case {
    size_t num_outputs;
    OutputKind output_kind;
    bool takes_inputs;
  };
  for (const auto& [num_outputs, output_kind, takes_inputs] :
       {Case{40, kProducts, false}, Case{kMomentOutputs, kProducts, true}, Case{40, kOthers, false},
        Case{kMomentOutputs, kOthers, false}, Case{40, kUnknownProducts, true}}) {
    InputMoments moments(LayoutOfMatrix(num_outputs, kMomentInputs), output_kind);
    EXPECT_EQ(moments.takes_inputs(), takes_inputs);
    const Matrix lacking = RandomMatrix(kRows, takes_inputs ? kMomentInputs : num_outputs, 4);
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
  InputMoments moments(LayoutOfMatrix(2, kManyInputs), OutputKind::kProducts);
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
  const TensorLayout qc8w = LayoutOfMatrix(2, kManyInputs, Scheme::kQc8w);
  EXPECT_EQ(InputMoments(qc8w, OutputKind::kProducts).parts().size(), 1);
}

}  // namespace
}  // namespace cria
