#pragma once

#include <cstddef>
#include <memory>

#include "converter/calibrate/calibration_text.h"
#include "converter/progress.h"
#include "converter/write/file_plan.h"
#include "converter/write/scratch_file.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What calibrating did.
struct CalibrationReport {
  size_t num_tokens = 0;      // 0: the model was not calibrated.
  size_t num_matrices = 0;    // In the layers.
  size_t num_scaled = 0;      // Of these, whose input channels were scaled.
  size_t num_calibrated = 0;  // The others are rounded, because that is better for held-back text.
  // The geometric mean, over the matrices, of the squared error of their outputs on held-back text
  // in relation to that of rounding.
  double held_back_ratio = 1.0;
  // Whether there are fewer tokens than twice the inputs of the widest matrix.
  bool has_few_tokens = false;
};

// Quantizes the matrices of all layers for the activations that a text causes, and keeps them in
// `scratch`. It goes from layer to layer: each matrix is calibrated with the inputs that it gets
// where everything before it is quantized. Memory holds the weights of one matrix, their moments,
// and some rows of activations; the activations of all tokens are in `scratch`, too. The result is
// the same for any number of threads, and on every processor of an architecture.
Result<CalibrationReport> Calibrate(const CalibrationTokens& tokens, const ModelConfig& config,
                                    const ThreadPool& threads,
                                    const std::shared_ptr<ScratchFile>& scratch,
                                    const ProgressCallback& progress, FilePlan& plan);

}  // namespace cria
