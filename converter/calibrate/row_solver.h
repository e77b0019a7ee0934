#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "converter/quantize/row_quantizer.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// Chooses the codes of a matrix's rows for the least squared error of its products with inputs of
// known second moments, where rounding each weight would have the least error of the weights.
//
// First, GPTQ (Frantar et al. 2022): weights are rounded in the order of the columns, and what each
// loses is made up for by those after it, as far as the inputs are correlated. The scale of a block
// is searched when its first column is reached, and so is its minimum. Then, coordinate descent, by
// turns over the scales and minimums, and the codes, of each block, which only takes steps that
// lower the error.
class RowSolver {
 public:
  // `moments` [n, n] is the mean of x * transposed x over the inputs x. `layout` is that of the
  // matrix, with n input channels, and a scheme that has a ScaleRule. Fails with kUnsupported if
  // the moments are not finite.
  static Result<RowSolver> Create(const ThreadPool& threads, Matrix moments,
                                  const TensorLayout& layout);

  // Adds to `rows` [count, n] half of what they need so that products with the rounded inputs,
  // whose moments these are, come nearest to what they should be. All of it would fit the
  // calibration text too closely. `lacking` [count, n] is the mean of l * transposed x for the
  // inputs x and what the outputs of these rows lack, l.
  void Correct(ConstMatrixView lacking, MatrixView rows) const;

  // Returns the matrix [n, n] whose product with any rows is what Correct adds to them, if their
  // outputs should be products with other inputs. `lacking` [n, n] is the mean of l * transposed x
  // for what the inputs lack, l.
  Matrix CorrectionOfProducts(const ThreadPool& threads, Matrix lacking) const;

  // The codes for `targets` [count, n]. The result of a row depends on no other row.
  std::vector<CodedRow> Solve(ConstMatrixView targets) const;

  // How many rows of a matrix to give at once. More of them share the time that moments take to be
  // brought into the order of a product; fewer are shared more evenly by threads.
  static constexpr size_t RowsAtOnce(size_t matrix_rows) {
    return matrix_rows < 1024 ? 96 : matrix_rows < 2048 ? 192 : 256;
  }

 private:
  struct Work;

  RowSolver(Matrix moments, const TensorLayout& layout);

  size_t BatchEnd(size_t begin) const;
  // The end of the block whose scale column `begin` has, without padding.
  size_t BlockEnd(size_t begin) const;
  bool BeginsBlock(size_t column) const { return column % block_size_ == 0; }
  void RoundInOrder(Work& work) const;
  void RoundBatch(size_t row, size_t begin, size_t end, MatrixView wanted, Work& work) const;
  // Turns what rounding each weight has added into gradients, by the half of a product that a
  // triangular factor leaves.
  void FindGradients(Work& work) const;
  void Descend(Work& work) const;
  void DescendInBatch(size_t row, size_t begin, size_t end, MatrixView steps, Work& work) const;
  // The scale and the minimum that are best for a block's codes; absent if they are no better.
  struct Refit {
    float scale;
    float minimum;
  };
  std::optional<Refit> RefitBlock(std::span<const float> gradient, size_t begin, size_t end,
                                  const CodedRow& coded) const;

  TensorLayout layout_;
  ScaleRule rule_;
  size_t block_size_;
  Matrix moments_;                 // Shrunk and damped: u_ * diagonal(pivots_) * transposed u_.
  std::vector<float> block_sums_;  // [n], of a row's moments in the columns of its block.
  Matrix u_;                       // Upper triangular.
  std::vector<float> pivots_;      // [n]
};

}  // namespace cria
