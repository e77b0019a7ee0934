#include "converter/calibrate/kept_predictions.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/prediction_pair.h"
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
  constexpr size_t kTileBytes = size_t{8} << 20;
  const PlannedTensor& head = HeadOf(plan);
  assert(head.parts.size() == 1 && !head.rotates_outputs);
  const TensorLayout& layout = head.stored.layout;
  for (Matrix* const rows : {&exact, &stored}) {
    if (config.rotated_residual) RotateRows(rows->columns(), rows->values());
    CRIA_ASSIGN_OR_RETURN(*rows, HeadInputs(threads, config, plan, std::as_const(*rows).view()));
  }
  if (layout.scheme != Scheme::kF32) RoundInputs(threads, stored.view());
  std::vector<PredictionPair> pairs(exact.rows());
  const MappedPart& part = head.parts.front();
  const size_t columns = layout.input_channels;
  const size_t tile_rows = std::max<size_t>(1, kTileBytes / (columns * sizeof(float)));
  TensorReader reader;
  for (size_t first = 0; first < layout.output_channels; first += tile_rows) {
    CRIA_RETURN_IF_ERROR(
        progress(static_cast<double>(first) / static_cast<double>(layout.output_channels)));
    Matrix rows(std::min(tile_rows, layout.output_channels - first), columns);
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, uint64_t{first} * columns, rows.values()));
    ApplyFactors(part, first, columns, rows.values());
    Matrix exact_logits = Multiply(threads, exact, rows);
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, head, first, rows.view()));
    Matrix stored_logits = Multiply(threads, stored, rows);
    threads.ParallelFor(pairs.size(), [&](size_t row) {
      const std::span<float> exact_row = exact_logits.view().row(row);
      const std::span<float> stored_row = stored_logits.view().row(row);
      CapLogits(config, exact_row);
      CapLogits(config, stored_row);
      pairs[row].Add(first, exact_row, stored_row);
    });
  }
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
