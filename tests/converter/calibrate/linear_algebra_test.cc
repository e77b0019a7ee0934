#include "converter/calibrate/linear_algebra.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "random_matrix.h"
#include "support/unwrap.h"

namespace cria {
namespace {

// Sizes of one, of odd numbers, and of more than a block of registers.
struct Shape {
  size_t m, n, k;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {7, 5, 3}, {13, 50, 31}, {33, 64, 100}, {64, 172, 257}};

double Largest(const Matrix& matrix) {
  double largest = 0.0;
  for (const float value : matrix.values()) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

// Compares with sums in double, added to ones.
template <typename ElementOf>
void ExpectProduct(const Matrix& product, size_t k, ElementOf&& element_of) {
  for (size_t i = 0; i < product.rows(); ++i) {
    for (size_t j = 0; j < product.columns(); ++j) {
      double sum = 1.0;
      for (size_t l = 0; l < k; ++l) sum += element_of(i, j, l);
      EXPECT_NEAR(product(i, j), sum, 1e-5 * static_cast<double>(k)) << i << ", " << j;
    }
  }
}

Matrix Ones(size_t rows, size_t columns) {
  Matrix ones(rows, columns);
  for (float& value : ones.values()) value = 1.0f;
  return ones;
}

TEST(LinearAlgebra, ProductsAreAdded) {
  ASSERT_TRUE(LinearAlgebraRuns());
  for (const auto& [m, n, k] : kShapes) {
    const Matrix a = RandomMatrix(m, k, 1);
    const Matrix b = RandomMatrix(k, n, 2);
    const Matrix b_transposed = RandomMatrix(n, k, 3);
    const Matrix a_transposed = RandomMatrix(k, m, 4);
    Matrix product = Ones(m, n);
    AddProduct(a.view(), b.view(), -0.5f, product.view());
    ExpectProduct(product, k,
                  [&](size_t i, size_t j, size_t l) { return -0.5 * double{a(i, l)} * b(l, j); });
    product = Ones(m, n);
    AddProductWithTransposed(a.view(), b_transposed.view(), product.view());
    ExpectProduct(product, k, [&](size_t i, size_t j, size_t l) {
      return double{a(i, l)} * b_transposed(j, l);
    });
    product = Ones(m, n);
    AddTransposedProduct(a_transposed.view(), b.view(), product.view());
    ExpectProduct(product, k, [&](size_t i, size_t j, size_t l) {
      return double{a_transposed(l, i)} * b(l, j);
    });
  }
}

TEST(LinearAlgebra, ViewsOfPartsTouchNothingElse) {
  const Matrix a = RandomMatrix(9, 20, 1);
  const Matrix b = RandomMatrix(20, 20, 2);
  Matrix product = Ones(9, 20);
  AddProduct(a.view().Rows(0, 6).Columns(4, 7), b.view().Rows(4, 7).Columns(3, 5), 1.0f,
             product.view().Rows(2, 6).Columns(10, 5));
  for (size_t i = 0; i < 9; ++i) {
    for (size_t j = 0; j < 20; ++j) {
      double sum = 1.0;
      if (i >= 2 && i < 8 && j >= 10 && j < 15) {
        // Row i - 2 of the product is that of a.
        for (size_t l = 4; l < 11; ++l) sum += double{a(i - 2, l)} * b(l, j - 7);
        EXPECT_NEAR(product(i, j), sum, 1e-5);
      } else {
        EXPECT_EQ(product(i, j), 1.0f) << i << ", " << j;
      }
    }
  }
}

TEST(LinearAlgebra, FactorsGiveTheMatrixBack) {
  const ThreadPool threads = Unwrap(ThreadPool::Create(2));
  for (const size_t size : {1, 5, 64, 150, 270}) {
    const Matrix inputs = CorrelatedInputs(2 * size, size, 5);
    Matrix moments(size, size);
    AddTransposedProduct(inputs.view(), inputs.view(), moments.view());
    Matrix upper = moments;
    // Only the upper triangle is read.
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < i; ++j) upper(i, j) = NAN;
    }
    Matrix u(size, size);
    std::vector<float> pivots(size);
    ASSERT_TRUE(FactorizeUpper(threads, upper.view(), u.view(), pivots));
    const double tolerance = 1e-5 * Largest(moments);
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(u(i, i), 1.0f);
      for (size_t j = 0; j < size; ++j) {
        if (j < i) {
          EXPECT_EQ(u(i, j), 0.0f);
        }
        double sum = 0.0;
        for (size_t l = 0; l < size; ++l) sum += double{u(i, l)} * pivots[l] * u(j, l);
        EXPECT_NEAR(sum, moments(i, j), tolerance) << i << ", " << j;
      }
    }
    const Matrix x = RandomMatrix(3, size, 6);
    Matrix products(3, size);
    AddProduct(x.view(), moments.view(), 1.0f, products.view());
    DivideByFactorized(u.view(), pivots, products.view());
    for (size_t i = 0; i < x.values().size(); ++i) {
      EXPECT_NEAR(products.values()[i], x.values()[i], 0.05) << size << ", " << i;
    }
  }
}

TEST(LinearAlgebra, FactorsAreTheSameForEveryNumberOfThreads) {
  constexpr size_t kSize = 600;
  const Matrix inputs = CorrelatedInputs(2 * kSize, kSize, 5);
  Matrix moments(kSize, kSize);
  AddTransposedProduct(inputs.view(), inputs.view(), moments.view());
  std::vector<Matrix> factors;
  for (const size_t num_threads : {1, 2, 3}) {
    std::vector<float> pivots(kSize);
    Matrix& u = factors.emplace_back(kSize, kSize);
    ASSERT_TRUE(
        FactorizeUpper(Unwrap(ThreadPool::Create(num_threads)), moments.view(), u.view(), pivots));
    const std::span<const float> one = factors.front().values();
    EXPECT_EQ(std::memcmp(u.values().data(), one.data(), one.size_bytes()), 0) << num_threads;
  }
}

TEST(LinearAlgebra, OnlyPositiveDefiniteMatricesHaveFactors) {
  Matrix matrix(2, 2);
  Matrix u(2, 2);
  std::vector<float> pivots(2);
  const ThreadPool threads = Unwrap(ThreadPool::Create(1));
  EXPECT_FALSE(FactorizeUpper(threads, matrix.view(), u.view(), pivots));
  matrix(0, 0) = matrix(1, 1) = 1.0f;
  matrix(0, 1) = matrix(1, 0) = 2.0f;
  EXPECT_FALSE(FactorizeUpper(threads, matrix.view(), u.view(), pivots));
  matrix(0, 1) = NAN;
  EXPECT_FALSE(FactorizeUpper(threads, matrix.view(), u.view(), pivots));
}

}  // namespace
}  // namespace cria
