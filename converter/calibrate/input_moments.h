#pragma once

#include <algorithm>
#include <cstddef>

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
        is_wide_(output_channels > input_channels) {}

  // Adds rows of inputs [rows, input_channels], and of the inputs and outputs of the checkpoint's
  // matrix, [rows, input_channels] and [rows, output_channels].
  void Add(const ThreadPool& threads, ConstMatrixView inputs, ConstMatrixView exact_inputs,
           ConstMatrixView exact_outputs);
  // Turns the sums into means. Call it once, after the last row, with the checkpoint's matrix.
  void Finish(const ThreadPool& threads, const Matrix& weights);

  size_t num_rows() const { return num_rows_; }
  // The mean of x * transposed x, [input_channels, input_channels], for inputs x.
  const Matrix& inputs() const { return inputs_; }
  // The mean of y * transposed x, [output_channels, input_channels], for outputs y.
  const Matrix& outputs() const { return exact_; }
  // The mean of transposed y * y.
  double output_squares() const { return output_squares_; }

 private:
  Matrix inputs_;
  // Until Finish, sums of x' * transposed x for the exact inputs x' if the matrix has more outputs
  // than inputs, since this takes less time than to add up y * transposed x.
  Matrix exact_;
  bool is_wide_;
  double output_squares_ = 0.0;
  size_t num_rows_ = 0;
};

}  // namespace cria
