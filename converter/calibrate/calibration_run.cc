#include "converter/calibrate/calibration_run.h"

#include <string>

namespace cria {

CalibrationRun::CalibrationRun(const CalibrationTokens& its_tokens, const ModelConfig& its_config,
                               const ThreadPool& its_threads, ScratchFile& scratch,
                               const ProgressCallback& its_progress, size_t max_inputs)
    : tokens(its_tokens),
      config(its_config),
      threads(its_threads),
      progress(its_progress),
      all_rows(BatchAllRows(tokens)),
      exact(scratch, tokens.ids.size(), config.hidden_size),
      stored(scratch, tokens.ids.size(), config.hidden_size),
      exact_inner(scratch, tokens.ids.size(), max_inputs),
      stored_inner(scratch, tokens.ids.size(), max_inputs),
      exact_sum(scratch, config.num_experts == 0 ? 0 : tokens.ids.size(), config.hidden_size),
      stored_sum(scratch, config.num_experts == 0 ? 0 : tokens.ids.size(), config.hidden_size) {}

Status CalibrationRun::ReportProgress(const PlannedTensor& tensor, double fraction) const {
  return ReportProgress("calibrating " + tensor.stored.spec.Name(), NumWeights(tensor), fraction);
}

Status CalibrationRun::ReportProgress(const std::string& what, uint64_t num_weights,
                                      double fraction) const {
  if (progress == nullptr) return {};
  const auto weights = static_cast<uint64_t>(fraction * static_cast<double>(num_weights));
  if (progress({what, done_weights + weights, total_weights})) return {};
  return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
}

uint64_t NumWeights(const PlannedTensor& tensor) {
  return uint64_t{tensor.stored.spec.output_channels} * tensor.stored.spec.input_channels;
}

}  // namespace cria
