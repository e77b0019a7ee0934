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

}  // namespace

bool LinearAlgebraRuns() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx") != 0;
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

bool FactorizeUpper(ConstMatrixView symmetric, MatrixView u, std::span<float> pivots) {
  // With rows and columns in reverse order, an upper factor is the lower one of Cholesky.
  Eigen::MatrixXd factor = MapOf(symmetric).reverse().cast<double>();
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factorized(factor);
  if (factorized.info() != Eigen::Success) return false;
  const auto last = static_cast<Eigen::Index>(pivots.size()) - 1;
  for (Eigen::Index i = 0; i <= last; ++i) {
    const double diagonal = factor(last - i, last - i);
    if (!(diagonal > 0.0)) return false;  // NaN.
    pivots[static_cast<size_t>(i)] = static_cast<float>(diagonal * diagonal);
  }
  Map upper = MapOf(u);
  for (Eigen::Index j = 0; j <= last; ++j) {
    const double inverse = 1.0 / factor(last - j, last - j);
    for (Eigen::Index i = 0; i <= last; ++i) {
      upper(i, j) = i > j ? 0.0f : static_cast<float>(factor(last - i, last - j) * inverse);
    }
  }
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
