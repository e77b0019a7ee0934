#include "converter/calibrate/predictions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "converter/calibrate/block.h"
#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

double LogSumOfExps(std::span<const float> logits) {
  const float largest = std::ranges::max(logits);
  double sum = 0.0;
  for (const float each : logits) sum += std::exp(double{each} - largest);
  return std::log(sum) + largest;
}

double Divergence(std::span<const float> exact, std::span<const float> changed) {
  const double exact_sum = LogSumOfExps(exact);
  const double changed_sum = LogSumOfExps(changed);
  double divergence = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double expected = double{exact[i]} - exact_sum;
    divergence += std::exp(expected) * (expected - (double{changed[i]} - changed_sum));
  }
  return divergence;
}

}  // namespace

std::vector<size_t> EvenlySpaced(std::span<const size_t> all, size_t count) {
  count = std::clamp<size_t>(count, 1, all.size());
  std::vector<size_t> spaced;
  spaced.reserve(count);
  for (size_t i = 0; i < count; ++i) spaced.push_back(all[i * all.size() / count]);
  return spaced;
}

Result<Matrix> EmbedWindows(const CalibrationTokens& tokens, std::span<const size_t> windows,
                            const ModelConfig& config, FilePlan& plan) {
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
  if (config.rotated_residual) RotateRows(rows.columns(), rows.values());
  return rows;
}

Result<std::vector<double>> Divergences(const ThreadPool& threads, const ModelConfig& config,
                                        FilePlan& plan, const Matrix& exact,
                                        std::span<const Matrix> changed) {
  // Rows of logits that are computed at once.
  constexpr size_t kTileRows = 64;
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> gain,
                        ReadVector(FindTensor(plan, TensorRole::kNorm, kNoLayer)));
  CRIA_ASSIGN_OR_RETURN(const Matrix head, ReadMatrix(HeadOf(plan)));
  const auto logits_of = [&](const Matrix& hidden, size_t first, size_t count) {
    Matrix rows(count, hidden.columns());
    NormalizeRows(threads, hidden.view().Rows(first, count), gain, config.rms_norm_eps,
                  rows.view());
    Matrix logits = Multiply(threads, rows, head);
    const float cap = config.final_logit_softcapping;
    if (cap != 0.0f) {
      for (float& logit : logits.values()) logit = cap * HyperbolicTangent(logit / cap);
    }
    return logits;
  };
  std::vector<double> sums(changed.size());
  for (size_t first = 0; first < exact.rows(); first += kTileRows) {
    const size_t count = std::min(kTileRows, exact.rows() - first);
    const Matrix expected = logits_of(exact, first, count);
    for (size_t i = 0; i < changed.size(); ++i) {
      const Matrix logits = logits_of(changed[i], first, count);
      std::vector<double> divergences(count);
      threads.ParallelFor(count, [&](size_t row) {
        divergences[row] = Divergence(expected.view().row(row), logits.view().row(row));
      });
      for (const double each : divergences) sums[i] += each;
    }
  }
  // The last bits of the C library's exponentials depend on the processor, and what is chosen by
  // these sums must not.
  for (double& sum : sums) sum = static_cast<float>(sum);
  return sums;
}

}  // namespace cria
