#pragma once

#include <vector>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/scheme_options.h"
#include "converter/write/file_plan.h"
#include "converter/write/progress.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// How many tokens of text MeasureSensitivity and MeasureErrors take at most for so many matrices,
// of whose weights a token uses so many.
size_t SensitivityTokens(double weights_per_token, size_t num_matrices);

// Sets the cost of every option of the matrices, which AllSchemeOptions has made, to the
// Kullback-Leibler divergence, in nats per token, by which the model's predictions of the text
// change if this matrix alone is stored so. It is measured for int4 with the smallest blocks, by
// running the rest of the model on the changed products, or rows of the embedding table; the other
// options' are in relation to this as the squared errors of their products, or rows. Takes some
// windows of the text, fewer for large models. The result is the same for any number of threads.
Status MeasureSensitivity(const CalibrationTokens& tokens, const ModelConfig& config,
                          const ThreadPool& threads, const ProgressCallback& progress,
                          FilePlan& plan, std::vector<MatrixOptions>& matrices);

// Estimates these costs without a text: a cost is the squared error of the matrix's weights in
// relation to their squares.
Status EstimateSensitivity(const ThreadPool& threads, const ProgressCallback& progress,
                           const FilePlan& plan, std::vector<MatrixOptions>& matrices);

// How far predictions are from the checkpoint's because of one matrix.
struct MatrixError {
  TensorSpec spec;
  double divergence = 0.0;  // Kullback-Leibler, nats per token, if only this matrix is stored.
};

// The errors of all matrices of the layers as the plan stores them.
Result<std::vector<MatrixError>> MeasureErrors(const CalibrationTokens& tokens,
                                               const ModelConfig& config, const ThreadPool& threads,
                                               const ProgressCallback& progress, FilePlan& plan);

}  // namespace cria
