#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "converter/calibrate/calibration_text.h"
#include "converter/calibrate/matrix.h"
#include "converter/calibrate/prediction_pair.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// `count` of some windows or tokens, or all if there are fewer, evenly spaced; at least one.
std::vector<size_t> EvenlySpaced(std::span<const size_t> all, size_t count);

// The hidden rows of the windows' tokens before the first layer, [tokens, hidden_size]. With
// `layout`, they are those of a table that is stored so.
Result<Matrix> EmbedWindows(const CalibrationTokens& tokens, std::span<const size_t> windows,
                            const ModelConfig& config, FilePlan& plan,
                            const TensorLayout* layout = nullptr);

// One of the models that Divergences compares has a head that is stored in another layout.
struct HeadChange {
  size_t index = 0;  // The model's.
  TensorLayout layout;
};

// The Kullback-Leibler divergence, in nats and summed over all rows, of the predictions of each of
// `changed` from those of `exact`. All of them are hidden rows behind the last layer, [tokens,
// hidden_size], as the checkpoint has them: not rotated.
Result<std::vector<double>> Divergences(const ThreadPool& threads, const ModelConfig& config,
                                        FilePlan& plan, const Matrix& exact,
                                        std::span<const Matrix> changed,
                                        const std::optional<HeadChange>& head_change = {});

// Reads the checkpoint's head in parts of a few megabytes: calls `visit` with the rows [count,
// hidden_size] of the tokens from `first` on.
using VisitHeadRows = std::function<Status(size_t first, Matrix rows)>;
Status ReadHeadByParts(FilePlan& plan, const VisitHeadRows& visit);

// Logits [tokens, count] for what HeadInputs returns, with such rows; limited if the model does so.
Matrix Logits(const ThreadPool& threads, const ModelConfig& config, const Matrix& inputs,
              const Matrix& rows);

// Adds such logits, of the tokens from `first` on, to the pair of each row.
void AddLogits(const ThreadPool& threads, size_t first, const Matrix& exact, const Matrix& changed,
               std::span<PredictionPair> pairs);

// What the head reads of rows behind the last layer, which are as the checkpoint has them.
Result<Matrix> HeadInputs(const ThreadPool& threads, const ModelConfig& config, FilePlan& plan,
                          ConstMatrixView hidden);

}  // namespace cria
