#include "converter/calibrate/kept_predictions.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/stored_error.h"
#include "converter/write/hadamard.h"

namespace cria {
std::vector<uint32_t> HeldBackTokens(const CalibrationTokens& tokens, size_t max_tokens) {
  std::vector<size_t> all;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.IsHeldBack(i / tokens.window_tokens)) all.push_back(i);
  }
  const std::vector<size_t> spaced = EvenlySpaced(all, max_tokens);
  return {spaced.begin(), spaced.end()};
}

Result<KeptPredictions> ComparePredictions(const ThreadPool& threads, const ModelConfig& config,
                                           FilePlan& plan, Matrix exact, Matrix stored,
                                           const std::function<Status(double)>& progress) {
  const PlannedTensor& head = HeadOf(plan);
  const TensorLayout& layout = head.stored.layout;
  for (Matrix* const rows : {&exact, &stored}) {
    if (config.rotated_residual) RotateRows(rows->columns(), rows->values());
    CRIA_ASSIGN_OR_RETURN(*rows, HeadInputs(threads, config, plan, std::as_const(*rows).view()));
  }
  if (layout.scheme != Scheme::kF32) RoundInputs(threads, stored.view());
  std::vector<PredictionPair> pairs(exact.rows());
  const auto compare = [&](size_t first, Matrix rows) -> Status {
    CRIA_RETURN_IF_ERROR(
        progress(static_cast<double>(first) / static_cast<double>(layout.output_channels)));
    const Matrix logits = Logits(threads, config, exact, rows);
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, head, first, rows.view()));
    AddLogits(threads, first, logits, Logits(threads, config, stored, rows), pairs);
    return {};
  };
  CRIA_RETURN_IF_ERROR(ReadHeadByParts(plan, compare));
  KeptPredictions result = {.num_tokens = exact.rows()};
  for (const PredictionPair& pair : pairs) {
    result.num_same += size_t{pair.have_same_choice()};
    result.divergence += pair.Divergence();
  }
  // As a float, because what is chosen by it must not depend on its last bits.
  result.divergence = static_cast<float>(result.divergence / static_cast<double>(pairs.size()));
  return result;
}

}  // namespace cria
