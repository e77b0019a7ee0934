#pragma once

#include <cstddef>
#include <memory>

#include "converter/calibrate/calibration_report.h"
#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/resume_folder.h"
#include "converter/write/file_plan.h"
#include "converter/write/progress.h"
#include "converter/write/scratch_file.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Quantizes the matrices of all layers for the activations that a text causes, and keeps them in
// `scratch`. It goes from layer to layer: each matrix is calibrated with the inputs that it gets
// where everything before it is quantized. Memory holds the weights of one matrix, their moments,
// and some rows of activations; the activations of all tokens are in `scratch`, too. Of a mixture
// of experts, each is calibrated for the tokens that reach it, and rounded if these are few. The
// result is the same for any number of threads, and on every processor of an architecture. With
// `resume`, which may be null, it goes on after the layers that are there, and adds each that it
// has done.
Result<CalibrationReport> Calibrate(const CalibrationTokens& tokens, const ModelConfig& config,
                                    const ThreadPool& threads,
                                    const std::shared_ptr<ScratchFile>& scratch,
                                    const ProgressCallback& progress, ResumeFolder* resume,
                                    FilePlan& plan);

}  // namespace cria
