#pragma once

#include <cstddef>
#include <filesystem>

#include "converter/calibrate/calibration_text.h"
#include "converter/convert.h"
#include "cria/error.h"

namespace cria::cli {

// Tokens that the checkpoint's model writes itself, for calibrating without a text: windows of
// random tokens at temperature 1, each behind the BOS token. A model with a chat template writes
// conversations: the template opens the turns, and the model writes what both sides say.
//
// For this, it converts the checkpoint to int8 in a temporary file beside `model_path`. The tokens
// are the same for any number of threads; on processors with other instructions they differ where
// the logits of two tokens are nearly the same. `max_tokens` of 0 stands for
// UsualCalibrationTokens. `config` is the checkpoint's. `progress` may cancel.
Result<CalibrationTokens> SampleCalibrationTokens(const std::filesystem::path& checkpoint_path,
                                                  const std::filesystem::path& model_path,
                                                  const ModelConfig& config,
                                                  const ConvertOptions& options, size_t max_tokens,
                                                  const ProgressCallback& progress);

}  // namespace cria::cli
