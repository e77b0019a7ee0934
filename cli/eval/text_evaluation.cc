#include "cli/eval/text_evaluation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "decode/open_sequence.h"
#include "llm/measure/forward_rows.h"
#include "llm/measure/log_sum_exp.h"

namespace cria::cli {
namespace {

// Adds the prediction of one target from each model's logits.
class Predictions {
 public:
  Predictions(const TextEvaluation& evaluation, std::vector<TokenPrediction>& predictions)
      : evaluation_(evaluation), predictions_(predictions) {}

  Status Add(int32_t target, std::span<const std::span<const float>> logits) {
    const double log_sum = LogSumExp(logits[0]);
    TokenPrediction prediction;
    prediction.token = target;
    prediction.negative_log_likelihood = Loss(logits[0], log_sum, target);
    if (evaluation_.save != nullptr) {
      CRIA_RETURN_IF_ERROR(
          evaluation_.save->Add(logits[0], log_sum, prediction.negative_log_likelihood));
    }
    if (evaluation_.base != nullptr) {
      const double base_log_sum = LogSumExp(logits[1]);
      prediction.base_negative_log_likelihood = Loss(logits[1], base_log_sum, target);
      CompareWithBase({.log_probabilities = logits[1], .log_sum = base_log_sum, .tokens = {}},
                      logits[0], log_sum, prediction);
    } else if (evaluation_.saved_base != nullptr) {
      CRIA_ASSIGN_OR_RETURN(const SavedLogits::Row row,
                            evaluation_.saved_base->Read(predictions_.size()));
      prediction.base_negative_log_likelihood = row.negative_log_likelihood;
      CompareWithBase(row.distribution, logits[0], log_sum, prediction);
    }
    if (!std::isfinite(prediction.negative_log_likelihood) ||
        !std::isfinite(prediction.base_negative_log_likelihood) ||
        !std::isfinite(prediction.divergence)) {
      return Fail(ErrorCode::kInvalidFile, "a model predicts values that are not finite");
    }
    predictions_.push_back(prediction);
    return {};
  }

 private:
  static float Loss(std::span<const float> logits, double log_sum, int32_t target) {
    return static_cast<float>(log_sum - double{logits[static_cast<size_t>(target)]});
  }

  const TextEvaluation& evaluation_;
  std::vector<TokenPrediction>& predictions_;
};

// The predictions of whole windows that an earlier run made.
Status ReadProgress(ProgressFile& file, const TextWindows& windows,
                    std::vector<TokenPrediction>& predictions) {
  size_t count = std::min(file.num_results(), windows.num_targets());
  if (count < windows.num_targets()) count -= count % windows.targets_per_window();
  predictions.resize(count);
  return file.Read(std::as_writable_bytes(std::span(predictions)));
}

}  // namespace

Result<std::vector<TokenPrediction>> EvaluateText(const TextWindows& windows,
                                                  const TextEvaluation& evaluation) {
  std::vector<TokenPrediction> predictions;
  predictions.reserve(windows.num_targets());
  if (evaluation.progress != nullptr) {
    CRIA_RETURN_IF_ERROR(ReadProgress(*evaluation.progress, windows, predictions));
  }
  const size_t window_inputs = std::min(windows.targets_per_window(), windows.num_targets());
  std::vector<OpenSequence> open;
  std::vector<ModelSequence> sequences;
  for (TokenModel* model : {evaluation.model, evaluation.base}) {
    if (model == nullptr) continue;
    CRIA_ASSIGN_OR_RETURN(OpenSequence sequence,
                          OpenSequence::Create(model->sequences(), window_inputs));
    sequences.push_back({model, sequence.id()});
    open.push_back(std::move(sequence));
  }
  Predictions adding(evaluation, predictions);
  const size_t first =
      (predictions.size() + windows.targets_per_window() - 1) / windows.targets_per_window();
  for (size_t index = first; index < windows.num_windows(); ++index) {
    const std::vector<int32_t> inputs = windows.Inputs(index);
    const std::span<const int32_t> targets = windows.Targets(index);
    CRIA_RETURN_IF_ERROR(
        ForwardRows(sequences, inputs, 0, inputs.size(),
                    [&](size_t row, std::span<const std::span<const float>> logits) {
                      return adding.Add(targets[row], logits);
                    }));
    if (evaluation.progress != nullptr) {
      const auto added = std::span(predictions).last(targets.size());
      CRIA_RETURN_IF_ERROR(evaluation.progress->Append(std::as_bytes(added)));
    }
    if (evaluation.on_window) evaluation.on_window(predictions);
  }
  return predictions;
}

}  // namespace cria::cli
