#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace cria {

// Rows of floats in memory of the caller, `stride` floats apart.
template <typename Float>
struct BasicMatrixView {
  Float* values = nullptr;
  size_t rows = 0;
  size_t columns = 0;
  size_t stride = 0;

  Float& operator()(size_t row, size_t column) const { return values[row * stride + column]; }
  std::span<Float> row(size_t index) const { return {values + index * stride, columns}; }
  BasicMatrixView Rows(size_t first, size_t count) const {
    return {values + first * stride, count, columns, stride};
  }
  BasicMatrixView Columns(size_t first, size_t count) const {
    return {values + first, rows, count, stride};
  }
  operator BasicMatrixView<const Float>() const { return {values, rows, columns, stride}; }
};
using MatrixView = BasicMatrixView<float>;
using ConstMatrixView = BasicMatrixView<const float>;

// A row-major matrix of its own; zeros at first.
class Matrix {
 public:
  Matrix() = default;
  Matrix(size_t rows, size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, 0.0f) {}
  // Without any values yet, for large matrices that several threads fill in.
  static Matrix Unfilled(size_t rows, size_t columns) {
    Matrix matrix;
    matrix.rows_ = rows;
    matrix.columns_ = columns;
    matrix.values_.resize(rows * columns);
    return matrix;
  }

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  MatrixView view() { return {values_.data(), rows_, columns_, columns_}; }
  ConstMatrixView view() const { return {values_.data(), rows_, columns_, columns_}; }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  float& operator()(size_t row, size_t column) { return values_[row * columns_ + column]; }
  float operator()(size_t row, size_t column) const { return values_[row * columns_ + column]; }

 private:
  // Leaves elements that are given no value as they are, instead of making them 0.
  template <typename T>
  struct UnfilledAllocator : std::allocator<T> {
    void construct(T* place) noexcept { ::new (static_cast<void*>(place)) T; }
    void construct(T* place, T value) noexcept { ::new (static_cast<void*>(place)) T(value); }
  };

  size_t rows_ = 0;
  size_t columns_ = 0;
  std::vector<float, UnfilledAllocator<float>> values_;
};

// a - b, of the same shape.
inline Matrix Difference(const Matrix& a, const Matrix& b) {
  Matrix difference = a;
  for (size_t i = 0; i < b.values().size(); ++i) difference.values()[i] -= b.values()[i];
  return difference;
}

}  // namespace cria
