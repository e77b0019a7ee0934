#include "converter/equalize/product_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "support/random_values.h"

namespace cria {
namespace {

using testing::ElementsAre;

constexpr size_t kColumns = 256;
constexpr size_t kRows = 32;

SampledRows RowsIn(Scheme scheme) {
  SampledRows rows = {
      .values = std::vector<float>(kRows * kColumns),
      .columns = kColumns,
      .layout = MakeTensorLayout({TensorRole::kOProj, 0, kRows, kColumns}, scheme, 32)};
  support::FillNormal(1, 0, rows.values);
  return rows;
}

// The error by multiplying stored weights with inputs that are rounded to 255 steps.
double MeasuredError(const SampledRows& rows, const std::vector<float>& input_rms) {
  RowQuantizer quantizer(rows.layout);
  std::vector<float> stored(rows.values.size());
  std::vector<std::byte> data(rows.layout.row_bytes());
  std::vector<std::byte> scales(rows.layout.row_scale_bytes());
  for (size_t i = 0; i < kRows; ++i) {
    quantizer.Quantize(std::span(rows.values).subspan(i * kColumns, kColumns), data, scales);
    quantizer.Dequantize(data, scales, std::span(stored).subspan(i * kColumns, kColumns));
  }
  double error = 0.0;
  double product = 0.0;
  for (uint64_t token = 0; token < 200; ++token) {
    std::vector<float> input(kColumns);
    support::FillNormal(2, token * kColumns, input);
    for (size_t j = 0; j < kColumns; ++j) input[j] *= input_rms[j];
    const auto [least, most] = std::ranges::minmax(input);
    const float step = (most - least) / 255.0f;
    for (size_t i = 0; i < kRows; ++i) {
      double exact = 0.0;
      double rounded = 0.0;
      for (size_t j = 0; j < kColumns; ++j) {
        exact += double{rows.values[i * kColumns + j]} * input[j];
        rounded += double{stored[i * kColumns + j]} * std::round(input[j] / step) * step;
      }
      error += (rounded - exact) * (rounded - exact);
      product += exact * exact;
    }
  }
  return error / product;
}

// Few large inputs often have one sign, so that a token's range is less than half of
// what is estimated.
TEST(ProductError, IsNearWhatProductsLose) {
  for (const Scheme scheme : {Scheme::kQb4w, Scheme::kQc8w}) {
    const SampledRows rows = RowsIn(scheme);
    std::vector<float> input_rms(kColumns, 1.0f);
    for (const auto& [largest, most] : {std::pair{1.0f, 2.5}, {5.0f, 4.0}, {50.0f, 8.0}}) {
      input_rms[17] = input_rms[101] = largest;
      const double measured = MeasuredError(rows, input_rms);
      const double estimated = RelativeProductError(rows, input_rms);
      EXPECT_GT(estimated, 0.6 * measured) << SchemeName(scheme) << ", " << largest;
      EXPECT_LT(estimated, most * measured) << SchemeName(scheme) << ", " << largest;
    }
  }
}

TEST(ProductError, OfNothingIsNone) {
  SampledRows rows = RowsIn(Scheme::kQc8w);
  EXPECT_EQ(RelativeProductError(rows, std::vector<float>(kColumns, 0.0f)), 0.0);
  std::ranges::fill(rows.values, 0.0f);
  EXPECT_EQ(RelativeProductError(rows, std::vector<float>(kColumns, 1.0f)), 0.0);
}

TEST(SampleRows, AreSpacedEvenlyOrAll) {
  EXPECT_THAT(SampleRows(3, 128), ElementsAre(0, 1, 2));
  EXPECT_THAT(SampleRows(10, 4), ElementsAre(0, 2, 5, 7));
}

}  // namespace
}  // namespace cria
