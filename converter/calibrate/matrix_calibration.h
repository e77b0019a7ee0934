#pragma once

#include <cstddef>
#include <vector>

#include "converter/calibrate/held_back_rows.h"
#include "converter/calibrate/input_moments.h"
#include "converter/calibrate/matrix.h"
#include "converter/quantize/row_quantizer.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// A matrix as it is stored.
struct CalibratedMatrix {
  Matrix values;                  // What is stored stands for: [output_channels, input_channels].
  std::vector<std::byte> data;    // As in the model file.
  std::vector<std::byte> scales;  // The same.
  QuantizationError error;        // The weights' error.
  // Squared errors of the outputs on held-back text, in relation to those of plain rounding.
  double held_back_ratio = 1.0;
  // Whether the codes are those of RowSolver; otherwise, each weight was rounded.
  bool is_calibrated = false;
};

// Rounds each weight.
CalibratedMatrix RoundMatrix(const ThreadPool& threads, const Matrix& weights,
                             const TensorLayout& layout);

// Quantizes a matrix for inputs with the moments of `training`. Where the result is worse than
// rounding for the rows that were held back, it is rounded instead.
Result<CalibratedMatrix> CalibrateMatrix(const ThreadPool& threads, const Matrix& weights,
                                         const TensorLayout& layout, InputMoments training,
                                         const HeldBackRows& held_back);

}  // namespace cria
