#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "converter/calibrate/activation_file.h"
#include "converter/calibrate/calibration_report.h"
#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/row_batches.h"
#include "converter/write/file_plan.h"
#include "converter/write/progress.h"
#include "converter/write/scratch_file.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What the parts of a calibration share. The model runs over the calibration tokens twice at once:
// as the checkpoint is, in f32 ("exact"), and with everything that is quantized so far ("stored").
struct CalibrationRun {
  // For matrices of up to so many inputs.
  CalibrationRun(const CalibrationTokens& its_tokens, const ModelConfig& its_config,
                 const ThreadPool& its_threads, ScratchFile& scratch,
                 const ProgressCallback& its_progress, size_t max_inputs);

  // Counts the weights of a matrix, of which this part is done.
  Status ReportProgress(const PlannedTensor& tensor, double fraction) const;
  // Reports other work in the same way; it counts as so many weights.
  Status ReportProgress(const std::string& what, uint64_t num_weights, double fraction) const;

  const CalibrationTokens& tokens;
  const ModelConfig& config;
  const ThreadPool& threads;
  const ProgressCallback& progress;
  const std::vector<RowBatch> all_rows;
  // What the layers so far have added up to: [tokens, hidden_size].
  ActivationFile exact;
  ActivationFile stored;
  // The inputs of the second matrix of a block: [rows of its batches, its inputs].
  ActivationFile exact_inner;
  ActivationFile stored_inner;
  // What the experts of a layer so far have added up to: [tokens, hidden_size]. Not in models
  // without experts.
  ActivationFile exact_sum;
  ActivationFile stored_sum;
  uint64_t total_weights = 0;
  uint64_t done_weights = 0;
  CalibrationProgress so_far;
};

uint64_t NumWeights(const PlannedTensor& tensor);

}  // namespace cria
