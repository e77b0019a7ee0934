#include "converter/write/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace cria {
namespace {

TEST(HadamardTest, RowsAreMultipliedByTheMatrixOfTheLargestPowerOfTwo) {
  for (const auto& [columns, part] : {std::pair<size_t, size_t>{1, 1}, {6, 2}, {8, 8}, {80, 16}}) {
    std::vector<float> values(3 * columns);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((7 * i) % 11);
    std::vector<float> rotated = values;
    RotateRows(columns, rotated);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t begin = i - i % columns % part;
      double expected = 0;
      for (size_t j = 0; j < part; ++j) {
        const bool is_negative = std::popcount((i - begin) & j) % 2 != 0;
        expected += is_negative ? -values[begin + j] : values[begin + j];
      }
      EXPECT_NEAR(rotated[i], expected / std::sqrt(static_cast<double>(part)), 1e-5);
    }
    RotateRows(columns, rotated);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(rotated[i], values[i], 1e-5);
  }
}

TEST(HadamardTest, ColumnsAreRowsOfTheTransposedMatrix) {
  constexpr size_t kRows = 12;
  constexpr size_t kColumns = 5;
  std::vector<float> values(kRows * kColumns), transposed(values.size());
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      values[i * kColumns + j] = transposed[j * kRows + i] = static_cast<float>(i * i + 3 * j);
    }
  }
  RotateColumns(kColumns, values);
  RotateRows(kRows, transposed);
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      EXPECT_EQ(values[i * kColumns + j], transposed[j * kRows + i]);
    }
  }
}

}  // namespace
}  // namespace cria
