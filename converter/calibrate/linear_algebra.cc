// The only source that includes Eigen, because it is compiled for instructions that not every
// processor has: nothing here may instantiate what another source instantiates, too.

#include "converter/calibrate/linear_algebra.h"

#define EIGEN_MPL2_ONLY
#define EIGEN_DONT_PARALLELIZE
// Blocks on the heap: if memory runs out, an exception is thrown, but a stack that cannot grow ends
// the process.
#define EIGEN_STACK_ALLOCATION_LIMIT 0
#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>

namespace cria {
namespace {

using Stride = Eigen::OuterStride<>;
template <typename Float>
using RowMajor = Eigen::Matrix<Float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<RowMajor<float>, 0, Stride>;
using ConstMap = Eigen::Map<const RowMajor<float>, 0, Stride>;

// Eigen divides products into blocks that fit the caches, and so the caches of a processor would
// decide the last bits. These sizes are those of a small core.
bool SetCacheSizes() {
  Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 2 << 20);
  return true;
}

Map MapOf(MatrixView view) {
  static const bool sizes_are_set = SetCacheSizes();
  static_cast<void>(sizes_are_set);
  return {view.values, static_cast<Eigen::Index>(view.rows),
          static_cast<Eigen::Index>(view.columns), Stride(static_cast<Eigen::Index>(view.stride))};
}

ConstMap MapOf(ConstMatrixView view) {
  return {view.values, static_cast<Eigen::Index>(view.rows),
          static_cast<Eigen::Index>(view.columns), Stride(static_cast<Eigen::Index>(view.stride))};
}

using Square = Eigen::Ref<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

// Replaces the lower triangle of `matrix` by L, with L * transposed L = matrix. Returns false if
// the matrix is not positive definite.
bool FactorizeLower(const ThreadPool& threads, Eigen::MatrixXd& matrix) {
  constexpr Eigen::Index kPanel = 256;
  const Eigen::Index size = matrix.rows();
  for (Eigen::Index begin = 0; begin < size; begin += kPanel) {
    const Eigen::Index width = std::min(kPanel, size - begin);
    const Eigen::Index end = begin + width;
    Square diagonal = matrix.block(begin, begin, width, width);
    const Eigen::LLT<Square, Eigen::Lower> factorized(diagonal);
    if (factorized.info() != Eigen::Success) return false;
    const auto num_tiles = static_cast<size_t>((size - end + kPanel - 1) / kPanel);
    const auto panel = [&](size_t tile) {
      const Eigen::Index row = end + static_cast<Eigen::Index>(tile) * kPanel;
      return matrix.block(row, begin, std::min(kPanel, size - row), width);
    };
    threads.ParallelFor(num_tiles, [&](size_t tile) {
      auto rows = panel(tile);
      diagonal.triangularView<Eigen::Lower>().transpose().solveInPlace<Eigen::OnTheRight>(rows);
    });
    threads.ParallelFor(num_tiles * num_tiles, [&](size_t index) {
      const size_t row = index / num_tiles;
      const size_t column = index % num_tiles;
      if (column > row) return;
      const auto left = panel(row);
      const auto right = panel(column);
      matrix
          .block(end + static_cast<Eigen::Index>(row) * kPanel,
                 end + static_cast<Eigen::Index>(column) * kPanel, left.rows(), right.rows())
          .noalias() -= left * right.transpose();
    });
  }
  return true;
}

}  // namespace

bool LinearAlgebraRuns() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

void AddProduct(ConstMatrixView a, ConstMatrixView b, float factor, MatrixView out) {
  MapOf(out).noalias() += factor * MapOf(a) * MapOf(b);
}

void AddProductWithTransposed(ConstMatrixView a, ConstMatrixView b, MatrixView out) {
  MapOf(out).noalias() += MapOf(a) * MapOf(b).transpose();
}

void AddTransposedProduct(ConstMatrixView a, ConstMatrixView b, MatrixView out) {
  MapOf(out).noalias() += MapOf(a).transpose() * MapOf(b);
}

void AddScaled(std::span<const float> added, float factor, std::span<float> row) {
  const float* const from = added.data();
  float* const to = row.data();
  const size_t size = row.size();
  for (size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

double QuadraticForm(ConstMatrixView symmetric, std::span<const float> vector) {
  constexpr size_t kColumns = 32;
  const size_t size = vector.size();
  double sum = 0.0;
  for (size_t begin = 0; begin < size; begin += kColumns) {
    float products[kColumns] = {};
    const size_t count = std::min(kColumns, size - begin);
    for (size_t row = 0; row < size; ++row) {
      const float factor = vector[row];
      const float* const values = symmetric.values + row * symmetric.stride + begin;
      if (count == kColumns) {  // Compilers vectorize this loop.
        for (size_t i = 0; i < kColumns; ++i) products[i] += factor * values[i];
      } else {
        for (size_t i = 0; i < count; ++i) products[i] += factor * values[i];
      }
    }
    for (size_t i = 0; i < count; ++i) sum += double{products[i]} * vector[begin + i];
  }
  return sum;
}

bool FactorizeUpper(const ThreadPool& threads, ConstMatrixView symmetric, MatrixView u,
                    std::span<float> pivots) {
  // With rows and columns in reverse order, an upper factor is the lower one of Cholesky. The
  // factor is stored by columns, so it is copied from and to rows in blocks that a cache holds.
  constexpr size_t kBlock = 16;
  const size_t size = pivots.size();
  const auto columns = static_cast<Eigen::Index>(size);
  Eigen::MatrixXd factor(columns, columns);
  const auto at = [&](size_t row, size_t column) -> double& {
    return factor(columns - 1 - static_cast<Eigen::Index>(row),
                  columns - 1 - static_cast<Eigen::Index>(column));
  };
  const auto for_blocks = [&](const auto& copy) {
    threads.ParallelFor((size + kBlock - 1) / kBlock, [&](size_t block) {
      copy(block * kBlock, std::min((block + 1) * kBlock, size));
    });
  };
  for_blocks([&](size_t begin, size_t end) {
    for (size_t i = 0; i < end; ++i) {
      const float* const row = symmetric.values + i * symmetric.stride;
      for (size_t j = std::max(i, begin); j < end; ++j) at(i, j) = double{row[j]};
    }
  });
  if (!FactorizeLower(threads, factor)) return false;
  Eigen::VectorXd inverses(columns);
  for (size_t i = 0; i < size; ++i) {
    const double diagonal = at(i, i);
    if (!(diagonal > 0.0)) return false;  // NaN.
    pivots[i] = static_cast<float>(diagonal * diagonal);
    inverses[static_cast<Eigen::Index>(i)] = 1.0 / diagonal;
  }
  for_blocks([&](size_t begin, size_t end) {
    for (size_t j = 0; j < size; ++j) {
      const double inverse = inverses[static_cast<Eigen::Index>(j)];
      for (size_t i = begin; i < end; ++i) {
        u(i, j) = i > j ? 0.0f : static_cast<float>(at(i, j) * inverse);
      }
    }
  });
  return true;
}

void DivideByFactorized(ConstMatrixView u, std::span<const float> pivots, MatrixView x) {
  const ConstMap upper = MapOf(u);
  Map values = MapOf(x);
  upper.transpose().triangularView<Eigen::UnitLower>().solveInPlace<Eigen::OnTheRight>(values);
  for (size_t row = 0; row < x.rows; ++row) {
    for (size_t i = 0; i < pivots.size(); ++i) x(row, i) /= pivots[i];
  }
  upper.triangularView<Eigen::UnitUpper>().solveInPlace<Eigen::OnTheRight>(values);
}

}  // namespace cria
