#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "converter/calibrate/calibration_report.h"
#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/matrix.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// The tokens behind which predictions are compared at the end of a calibration, at most.
inline constexpr size_t kJudgedTokens = 1024;

// The numbers of tokens that are held back, in ascending order: `max_tokens` of them, evenly
// spaced, or all if there are fewer.
std::vector<uint32_t> HeldBackTokens(const CalibrationTokens& tokens, size_t max_tokens);

// Compares the predictions of the checkpoint and of the model that becomes of it, whose head is
// stored as the plan says. `exact` and `stored` are their hidden rows of the same tokens
// behind the last layer, [tokens, hidden_size]. The head is read in parts of a few megabytes;
// `progress` is told how much of it is done, from 0 to 1, and can stop.
Result<KeptPredictions> ComparePredictions(const ThreadPool& threads, const ModelConfig& config,
                                           FilePlan& plan, Matrix exact, Matrix stored,
                                           const std::function<Status(double)>& progress);

}  // namespace cria
