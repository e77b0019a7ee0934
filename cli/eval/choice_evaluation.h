#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/eval/choice_question.h"
#include "cli/eval/progress_file.h"
#include "decode/token_model.h"
#include "text/tokenizer.h"

namespace cria::cli {

// Whether a question's most likely choice is the right one. Files keep it as it is in memory.
struct ChoiceResult {
  uint32_t is_right = 0;            // By the probability of the choice.
  uint32_t is_right_by_length = 0;  // By its logarithm, divided by the choice's characters.
};

// Scores choices as lm-evaluation-harness does (`acc` and `acc_norm`): one space is between context
// and choice, unless there is one already; a choice's tokens are those of both together behind
// those of the context alone; of texts that are longer than the model's context, the end counts.
// `on_question` is called after each question with all results so far. `progress` may be null.
Result<std::vector<ChoiceResult>> EvaluateChoices(
    TokenModel& model, const Tokenizer& tokenizer, std::span<const ChoiceQuestion> questions,
    ProgressFile* progress, const std::function<void(std::span<const ChoiceResult>)>& on_question);

std::string ChoiceSummaryText(std::span<const ChoiceResult> results);
nlohmann::ordered_json ChoiceSummaryJson(std::span<const ChoiceResult> results);

}  // namespace cria::cli
