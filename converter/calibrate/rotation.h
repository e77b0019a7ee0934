#pragma once

#include <optional>

#include "converter/calibrate/calibration_text.h"
#include "converter/write/file_plan.h"
#include "converter/write/progress.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

struct RotationReport {
  bool is_rotated = false;
  // The divergence from the checkpoint's predictions of held-back text if all matrices of the
  // layers are rounded, with a rotation in relation to without; 0 if it was not measured.
  double divergence_ratio = 0.0;
};

// How many tokens of text decide whether to rotate a model of which a token uses so many weights.
size_t RotationTrialTokens(double weights_per_token);

// Rotates the hidden state between the layers (ModelConfig::rotated_residual) by a Hadamard
// transform (Ashkboos et al. 2024, "QuaRot"): the gains of the layers' norms move into the columns
// of the matrices that read them, which are rotated, as are the outputs of those that write to the
// hidden state. The tables stay as they are. Few large channels are spread over all, so that int8
// inputs and blocks of int4 weights lose less; where there are none, the trained axes lose less. So
// it is done only if that lowers the divergence of rounding clearly, for windows that are held
// back, or if `choice` says so. It cannot be done if outputs of the layers are normalized, or if a
// gain is zero: it fails with kUsage then if it must be done.
Result<RotationReport> RotateResidual(const CalibrationTokens& tokens,
                                      const std::optional<bool>& choice, const ThreadPool& threads,
                                      const ProgressCallback& progress, ModelConfig& config,
                                      FilePlan& plan);

}  // namespace cria
