#include "converter/calibrate/predictions.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"
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

Result<Matrix> HeadInputs(const ThreadPool& threads, const ModelConfig& config, FilePlan& plan,
                          ConstMatrixView hidden) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> gain,
                        ReadVector(FindTensor(plan, TensorRole::kNorm, kNoLayer)));
  Matrix rows(hidden.rows, hidden.columns);
  NormalizeRows(threads, hidden, gain, config.rms_norm_eps, rows.view());
  return rows;
}

Status ReadHeadByParts(FilePlan& plan, const VisitHeadRows& visit) {
  constexpr size_t kPartBytes = size_t{8} << 20;
  const PlannedTensor& head = HeadOf(plan);
  assert(head.parts.size() == 1 && !head.rotates_outputs);
  const MappedPart& part = head.parts.front();
  const TensorSpec& spec = head.stored.spec;
  const size_t rows_of_part =
      std::max<size_t>(1, kPartBytes / (spec.input_channels * sizeof(float)));
  TensorReader reader;
  for (size_t first = 0; first < spec.output_channels; first += rows_of_part) {
    Matrix rows(std::min(rows_of_part, spec.output_channels - first), spec.input_channels);
    CRIA_RETURN_IF_ERROR(
        reader.Read(*part.source, uint64_t{first} * rows.columns(), rows.values()));
    ApplyFactors(part, first, rows.columns(), rows.values());
    CRIA_RETURN_IF_ERROR(visit(first, std::move(rows)));
  }
  return {};
}

Matrix Logits(const ThreadPool& threads, const ModelConfig& config, const Matrix& inputs,
              const Matrix& rows) {
  Matrix logits = Multiply(threads, inputs, rows);
  const float cap = config.final_logit_softcapping;
  if (cap == 0.0f) return logits;
  threads.ParallelFor(logits.rows(), [&](size_t row) {
    for (float& logit : logits.view().row(row)) logit = cap * HyperbolicTangent(logit / cap);
  });
  return logits;
}

void AddLogits(const ThreadPool& threads, size_t first, const Matrix& exact, const Matrix& changed,
               std::span<PredictionPair> pairs) {
  threads.ParallelFor(pairs.size(), [&](size_t row) {
    pairs[row].Add(first, exact.view().row(row), changed.view().row(row));
  });
}

Result<std::vector<double>> Divergences(const ThreadPool& threads, const ModelConfig& config,
                                        FilePlan& plan, const Matrix& exact,
                                        std::span<const Matrix> changed,
                                        const std::optional<HeadChange>& head_change) {
  CRIA_ASSIGN_OR_RETURN(const Matrix exact_inputs, HeadInputs(threads, config, plan, exact.view()));
  std::vector<Matrix> inputs;
  for (const Matrix& hidden : changed) {
    CRIA_ASSIGN_OR_RETURN(Matrix rows, HeadInputs(threads, config, plan, hidden.view()));
    inputs.push_back(std::move(rows));
  }
  PlannedTensor changed_head = HeadOf(plan);
  if (head_change) changed_head.stored.layout = head_change->layout;
  std::vector<std::vector<PredictionPair>> pairs(changed.size(),
                                                 std::vector<PredictionPair>(exact.rows()));
  const auto compare = [&](size_t first, Matrix rows) -> Status {
    const Matrix logits = Logits(threads, config, exact_inputs, rows);
    const auto add = [&](size_t i) {
      AddLogits(threads, first, logits, Logits(threads, config, inputs[i], rows), pairs[i]);
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!head_change || head_change->index != i) add(i);
    }
    if (!head_change) return {};
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, changed_head, first, rows.view()));
    add(head_change->index);
    return {};
  };
  CRIA_RETURN_IF_ERROR(ReadHeadByParts(plan, compare));
  std::vector<double> sums;
  for (const std::vector<PredictionPair>& of_model : pairs) {
    double sum = 0.0;
    for (const PredictionPair& pair : of_model) sum += pair.Divergence();
    // What is chosen by these sums must not depend on their last bits.
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

}  // namespace cria
