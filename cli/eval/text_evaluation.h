#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cli/eval/progress_file.h"
#include "cli/eval/saved_logits.h"
#include "cli/eval/token_prediction.h"
#include "decode/token_model.h"
#include "llm/measure/text_windows.h"

namespace cria::cli {

// What takes part in the evaluation of a text. At most one of `base` and `saved_base` is given.
struct TextEvaluation {
  TokenModel* model = nullptr;
  TokenModel* base = nullptr;
  SavedLogits* saved_base = nullptr;
  SavedLogitsWriter* save = nullptr;
  ProgressFile* progress = nullptr;  // Not together with `save`.
  // Called after each window with all predictions so far.
  std::function<void(std::span<const TokenPrediction>)> on_window;
};

// Predicts all targets of the windows. Fails with kInvalidFile if a model predicts values that are
// not finite.
Result<std::vector<TokenPrediction>> EvaluateText(const TextWindows& windows,
                                                  const TextEvaluation& evaluation);

}  // namespace cria::cli
