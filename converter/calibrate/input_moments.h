#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"

namespace cria {

// What outputs a matrix should have.
enum class OutputKind : uint8_t {
  kProducts,         // The checkpoint's matrix times its inputs.
  kUnknownProducts,  // The same, but they are not given, so that their squares are not known.
  kOthers,
};

// Second moments of the inputs of a matrix over the rows that were added, and of its inputs with
// the outputs that it should have.
class InputMoments {
 public:
  InputMoments(size_t input_channels, size_t output_channels, OutputKind output_kind)
      : inputs_(input_channels, input_channels),
        is_wide_(output_kind == OutputKind::kUnknownProducts ||
                 (output_kind == OutputKind::kProducts && output_channels > input_channels)),
        exact_(is_wide_ ? input_channels : output_channels, input_channels),
        output_squares_(output_channels) {}

  // Adds rows of inputs [rows, input_channels], of the inputs of the checkpoint's matrix [rows,
  // input_channels], and of the outputs that there should be [rows, output_channels].
  void Add(const ThreadPool& threads, ConstMatrixView inputs, ConstMatrixView exact_inputs,
           ConstMatrixView exact_outputs);
  // Turns the sums into means. Call it once, after the last row.
  void Finish();

  size_t num_rows() const { return num_rows_; }
  // The mean of x * transposed x, [input_channels, input_channels], for inputs x.
  const Matrix& inputs() const { return inputs_; }
  // The mean of y * transposed x for the outputs y that there should be of some rows of the
  // checkpoint's matrix, which are `weights`: rows first, first + step, ...: [rows,
  // input_channels].
  Matrix OutputsOf(ConstMatrixView weights, size_t first, size_t step = 1) const;
  // The mean of the square of each output; zeros if they were not given.
  std::span<const double> output_squares() const { return output_squares_; }

 private:
  Matrix inputs_;
  // Whether outputs are products, and more than inputs or not given.
  bool is_wide_;
  // If so, this is x' * transposed x with the exact inputs x', because this takes less time than to
  // add up y * transposed x.
  Matrix exact_;
  std::vector<double> output_squares_;
  size_t num_rows_ = 0;
};

}  // namespace cria
