#include "converter/calibrate/predictions.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/prediction_pair.h"
#include "converter/calibrate/stored_error.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/write/hadamard.h"

namespace cria {
std::vector<size_t> EvenlySpaced(std::span<const size_t> all, size_t count) {
  count = std::clamp<size_t>(count, 1, all.size());
  std::vector<size_t> spaced;
  spaced.reserve(count);
  for (size_t i = 0; i < count; ++i) spaced.push_back(all[i * all.size() / count]);
  return spaced;
}

Result<Matrix> EmbedWindows(const CalibrationTokens& tokens, std::span<const size_t> windows,
                            const ModelConfig& config, FilePlan& plan, const TensorLayout* layout) {
  const MappedPart& part = FindTensor(plan, TensorRole::kEmbedTokens, kNoLayer)->parts.front();
  TensorReader reader;
  Matrix rows(windows.size() * tokens.window_tokens, config.hidden_size);
  size_t row = 0;
  for (const size_t window : windows) {
    for (const int32_t id : tokens.Window(window)) {
      CRIA_RETURN_IF_ERROR(reader.Read(*part.source, static_cast<uint64_t>(id) * rows.columns(),
                                       rows.view().row(row++)));
    }
  }
  if (layout != nullptr) {
    RowQuantizer quantizer(*layout);
    for (size_t i = 0; i < rows.rows(); ++i) quantizer.Round(rows.view().row(i));
  }
  if (config.rotated_residual) RotateRows(rows.columns(), rows.values());
  return rows;
}

void CapLogits(const ModelConfig& config, std::span<float> logits) {
  const float cap = config.final_logit_softcapping;
  if (cap == 0.0f) return;
  for (float& logit : logits) logit = cap * HyperbolicTangent(logit / cap);
}

Result<Matrix> HeadInputs(const ThreadPool& threads, const ModelConfig& config, FilePlan& plan,
                          ConstMatrixView hidden) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> gain,
                        ReadVector(FindTensor(plan, TensorRole::kNorm, kNoLayer)));
  Matrix rows(hidden.rows, hidden.columns);
  NormalizeRows(threads, hidden, gain, config.rms_norm_eps, rows.view());
  return rows;
}

Result<std::vector<double>> Divergences(const ThreadPool& threads, const ModelConfig& config,
                                        FilePlan& plan, const Matrix& exact,
                                        std::span<const Matrix> changed,
                                        const std::optional<HeadChange>& head_change) {
  // Rows of logits that are computed at once.
  constexpr size_t kTileRows = 64;
  // Rows whose logits are kept for a change of the head, which would take as much memory as the
  // head again if both were there at once.
  constexpr size_t kHeadRows = 512;
  CRIA_ASSIGN_OR_RETURN(Matrix head, ReadMatrix(HeadOf(plan)));
  const auto logits_of = [&](const Matrix& hidden, size_t first, size_t count) -> Result<Matrix> {
    CRIA_ASSIGN_OR_RETURN(const Matrix rows,
                          HeadInputs(threads, config, plan, hidden.view().Rows(first, count)));
    Matrix logits = Multiply(threads, rows, head);
    CapLogits(config, logits.values());
    return logits;
  };
  std::vector<double> sums(changed.size());
  const auto compare = [&](const Matrix& expected, size_t index, size_t first) -> Status {
    CRIA_ASSIGN_OR_RETURN(const Matrix logits, logits_of(changed[index], first, expected.rows()));
    std::vector<double> divergences(expected.rows());
    threads.ParallelFor(divergences.size(), [&](size_t row) {
      PredictionPair pair;
      pair.Add(0, expected.view().row(row), logits.view().row(row));
      divergences[row] = pair.Divergence();
    });
    for (const double each : divergences) sums[index] += each;
    return {};
  };
  std::vector<Matrix> kept;
  for (size_t first = 0; first < exact.rows(); first += kTileRows) {
    CRIA_ASSIGN_OR_RETURN(Matrix expected,
                          logits_of(exact, first, std::min(kTileRows, exact.rows() - first)));
    for (size_t i = 0; i < changed.size(); ++i) {
      if (head_change && head_change->index == i) continue;
      CRIA_RETURN_IF_ERROR(compare(expected, i, first));
    }
    if (head_change && first < kHeadRows) kept.push_back(std::move(expected));
  }
  if (head_change) {
    PlannedTensor stored = HeadOf(plan);
    stored.stored.layout = head_change->layout;
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, stored, 0, head.view()));
    size_t rows = 0;
    for (const Matrix& expected : kept) {
      CRIA_RETURN_IF_ERROR(compare(expected, head_change->index, rows));
      rows += expected.rows();
    }
    sums[head_change->index] *= static_cast<double>(exact.rows()) / static_cast<double>(rows);
  }
  // What is chosen by these sums must not depend on their last bits.
  for (double& sum : sums) sum = static_cast<float>(sum);
  return sums;
}

}  // namespace cria
