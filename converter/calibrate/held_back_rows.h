#pragma once

#include <cstddef>

#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/matrix.h"

namespace cria {

// Rows that decide no code of a matrix, and judge its codes: inputs, and some of the outputs that
// the matrix should have with them.
class HeldBackRows {
 public:
  // `num_rows` will be added, of which as many as say enough are kept. Outputs that are
  // kUnknownProducts are computed when they are needed.
  HeldBackRows(size_t num_rows, size_t input_channels, size_t output_channels,
               OutputKind output_kind);

  // As InputMoments::Add.
  void Add(ConstMatrixView inputs, ConstMatrixView exact_inputs, ConstMatrixView exact_outputs);

  // Every so many outputs of a matrix are judged: a few hundred say as much as all.
  static size_t JudgedStep(size_t output_channels);

  // [rows, input_channels]
  const Matrix& inputs() const { return inputs_; }
  // The outputs that there should be of some rows of the checkpoint's matrix, which are `weights`
  // [count, input_channels]: rows first, first + step, ..., with the step of all its rows, and
  // `first` a multiple of it. Returns [rows, count].
  Matrix OutputsOf(ConstMatrixView weights, size_t first) const;

 private:
  size_t row_step_;
  size_t output_step_;
  bool knows_outputs_;
  size_t num_added_ = 0;
  Matrix inputs_;
  Matrix exact_;  // [rows, judged outputs], or the exact inputs if outputs are not known.
};

}  // namespace cria
