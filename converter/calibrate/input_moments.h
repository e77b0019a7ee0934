#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"

namespace cria {

// Second moments of the inputs of a matrix over the rows that were added, and of its inputs with
// the outputs that it should have.
class InputMoments {
 public:
  InputMoments(size_t input_channels, size_t output_channels)
      : inputs_(input_channels, input_channels),
        exact_(std::min(input_channels, output_channels), input_channels),
        is_wide_(output_channels > input_channels),
        output_squares_(output_channels) {}

  // Adds rows of inputs [rows, input_channels], and of the inputs and outputs of the checkpoint's
  // matrix, [rows, input_channels] and [rows, output_channels].
  void Add(const ThreadPool& threads, ConstMatrixView inputs, ConstMatrixView exact_inputs,
           ConstMatrixView exact_outputs);
  // Turns the sums into means. Call it once, after the last row.
  void Finish();

  size_t num_rows() const { return num_rows_; }
  // The mean of x * transposed x, [input_channels, input_channels], for inputs x.
  const Matrix& inputs() const { return inputs_; }
  // The mean of y * transposed x for the outputs y of some rows of the checkpoint's matrix, which
  // are `weights`: rows first, first + step, ...: [rows, input_channels].
  Matrix OutputsOf(ConstMatrixView weights, size_t first, size_t step = 1) const;
  // The mean of the square of each output.
  std::span<const double> output_squares() const { return output_squares_; }

 private:
  Matrix inputs_;
  // This is x' * transposed x, with the exact inputs x', if the matrix has more outputs
  // than inputs, because this takes less time than to add up y * transposed x.
  Matrix exact_;
  bool is_wide_;
  std::vector<double> output_squares_;
  size_t num_rows_ = 0;
};

}  // namespace cria
