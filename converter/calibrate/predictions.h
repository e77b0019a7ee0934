#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/matrix.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// `count` of some windows or tokens, or all if there are fewer, evenly spaced; at least one.
std::vector<size_t> EvenlySpaced(std::span<const size_t> all, size_t count);

// The hidden rows of the windows' tokens before the first layer, [tokens, hidden_size].
Result<Matrix> EmbedWindows(const CalibrationTokens& tokens, std::span<const size_t> windows,
                            const ModelConfig& config, FilePlan& plan);

// The Kullback-Leibler divergence, in nats and summed over all rows, of the predictions of each of
// `changed` from those of `exact`. All of them are hidden rows behind the last layer, [tokens,
// hidden_size], as the checkpoint has them: not rotated.
Result<std::vector<double>> Divergences(const ThreadPool& threads, const ModelConfig& config,
                                        FilePlan& plan, const Matrix& exact,
                                        std::span<const Matrix> changed);

}  // namespace cria
