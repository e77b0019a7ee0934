#include "cli/eval/choice_evaluation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/statistics.h"
#include "core/format.h"
#include "decode/open_sequence.h"
#include "llm/measure/forward_rows.h"
#include "llm/measure/log_sum_exp.h"

namespace cria::cli {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

// Context and choice; the tokens from `begin` on are the choice's.
struct ChoiceTokens {
  std::vector<int32_t> tokens;
  size_t begin = 0;
};

size_t NumCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char each) { return (static_cast<unsigned char>(each) & 0xc0u) != 0x80u; }));
}

class ChoiceScorer {
 public:
  ChoiceScorer(TokenModel& model, const Tokenizer& tokenizer, SequenceId sequence)
      : model_(model), tokenizer_(tokenizer), sequences_{{&model, sequence}} {}

  // The logarithm of each choice's probability after the context.
  Result<std::vector<double>> Score(const ChoiceQuestion& question) {
    std::vector<ChoiceTokens> choices;
    for (const std::string& choice : question.choices) {
      CRIA_ASSIGN_OR_RETURN(ChoiceTokens tokens, Encode(question.context, choice));
      choices.push_back(std::move(tokens));
    }
    const size_t shared = SharedTokens(choices);
    const auto ignore = [](size_t, std::span<const std::span<const float>>) { return Status(); };
    CRIA_RETURN_IF_ERROR(
        ForwardRows(sequences_, std::span(choices[0].tokens).first(shared), 0, 0, ignore));
    std::vector<double> scores;
    for (const ChoiceTokens& choice : choices) {
      CRIA_ASSIGN_OR_RETURN(const double score, ScoreTokens(choice, shared));
      scores.push_back(score);
    }
    return scores;
  }

 private:
  Result<ChoiceTokens> Encode(std::string_view context, std::string_view choice) const {
    const size_t last = context.find_last_not_of(kSpaces);
    const std::string_view words = context.substr(0, last == std::string_view::npos ? 0 : last + 1);
    const bool has_space = words.size() < context.size() || kSpaces.contains(choice[0]);
    std::string text(context);
    if (!has_space) text += ' ';
    text += choice;
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> alone, tokenizer_.Encode(words));
    ChoiceTokens both;
    CRIA_ASSIGN_OR_RETURN(both.tokens, tokenizer_.Encode(text));
    const int32_t bos = tokenizer_.vocabulary().bos_token_id;
    const bool begins_with_bos = !both.tokens.empty() && both.tokens.front() == bos;
    if (words.empty() && bos >= 0 && !begins_with_bos) {
      both.tokens.insert(both.tokens.begin(), bos);
    }
    // At least one token before the choice, and one of it.
    both.begin = std::clamp<size_t>(alone.size(), 1, std::max<size_t>(both.tokens.size(), 2) - 1);
    if (both.tokens.size() < 2) {
      return Fail(ErrorCode::kUnsupported,
                  "a choice of one token without a context cannot be predicted: the model has no "
                  "BOS token");
    }
    const size_t max_tokens = model_.context_tokens() + 1;  // The last token is not read.
    if (both.tokens.size() > max_tokens) {
      const size_t excess = both.tokens.size() - max_tokens;
      if (excess >= both.begin) {
        return Fail(ErrorCode::kOutOfRange,
                    Format("a choice of {} tokens is longer than the context of {}",
                           both.tokens.size() - both.begin, model_.context_tokens()),
                    RemedyKind::kLargerContext);
      }
      both.tokens.erase(both.tokens.begin(), both.tokens.begin() + static_cast<ptrdiff_t>(excess));
      both.begin -= excess;
    }
    return both;
  }

  // Tokens with which all choices begin, without those whose logits are needed.
  static size_t SharedTokens(std::span<const ChoiceTokens> choices) {
    size_t shared = choices[0].begin - 1;
    for (const ChoiceTokens& choice : choices) {
      shared = std::min(shared, choice.begin - 1);
      const auto [mismatch, other] = std::ranges::mismatch(
          std::span(choices[0].tokens).first(shared), std::span(choice.tokens).first(shared));
      shared =
          std::min(shared, static_cast<size_t>(mismatch - std::span(choices[0].tokens).begin()));
    }
    return shared;
  }

  Result<double> ScoreTokens(const ChoiceTokens& choice, size_t shared) {
    const std::span<const int32_t> tokens = choice.tokens;
    const auto inputs = tokens.subspan(shared, tokens.size() - 1 - shared);
    double score = 0.0;
    CRIA_RETURN_IF_ERROR(
        ForwardRows(sequences_, inputs, shared, tokens.size() - choice.begin,
                    [&](size_t row, std::span<const std::span<const float>> logits) -> Status {
                      const auto target = static_cast<size_t>(tokens[shared + row + 1]);
                      score += double{logits[0][target]} - LogSumExp(logits[0]);
                      return {};
                    }));
    if (!std::isfinite(score)) {
      return Fail(ErrorCode::kInvalidFile, "the model predicts values that are not finite");
    }
    return score;
  }

  TokenModel& model_;
  const Tokenizer& tokenizer_;
  ModelSequence sequences_[1];
};

ChoiceResult ResultOf(const ChoiceQuestion& question, std::span<const double> scores) {
  std::vector<double> by_length;
  by_length.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    by_length.push_back(scores[i] / static_cast<double>(NumCharacters(question.choices[i])));
  }
  const auto is_right = [&](std::span<const double> values) {
    const auto best = std::ranges::max_element(values) - values.begin();
    return static_cast<size_t>(best) == question.label ? 1u : 0u;
  };
  return {.is_right = is_right(scores), .is_right_by_length = is_right(by_length)};
}

struct Accuracy {
  double fraction = 0.0;
  double standard_error = 0.0;
};

Accuracy AccuracyOf(std::span<const ChoiceResult> results, uint32_t ChoiceResult::* is_right) {
  std::vector<double> values;
  values.reserve(results.size());
  for (const ChoiceResult& each : results) values.push_back(each.*is_right);
  return {.fraction = Mean(values), .standard_error = StandardError(values)};
}

}  // namespace

Result<std::vector<ChoiceResult>> EvaluateChoices(
    TokenModel& model, const Tokenizer& tokenizer, std::span<const ChoiceQuestion> questions,
    ProgressFile* progress, const std::function<void(std::span<const ChoiceResult>)>& on_question) {
  std::vector<ChoiceResult> results;
  results.reserve(questions.size());
  if (progress != nullptr) {
    results.resize(std::min(progress->num_results(), questions.size()));
    CRIA_RETURN_IF_ERROR(progress->Read(std::as_writable_bytes(std::span(results))));
  }
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(model.sequences(), model.context_tokens()));
  ChoiceScorer scorer(model, tokenizer, sequence.id());
  while (results.size() < questions.size()) {
    const ChoiceQuestion& question = questions[results.size()];
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> scores, scorer.Score(question));
    results.push_back(ResultOf(question, scores));
    if (progress != nullptr) {
      CRIA_RETURN_IF_ERROR(progress->Append(std::as_bytes(std::span(results).last(1))));
    }
    on_question(results);
  }
  return results;
}

std::string ChoiceSummaryText(std::span<const ChoiceResult> results) {
  const Accuracy raw = AccuracyOf(results, &ChoiceResult::is_right);
  const Accuracy by_length = AccuracyOf(results, &ChoiceResult::is_right_by_length);
  return Format("questions: {}\naccuracy: {:.2f} ± {:.2f}%\naccuracy by length: {:.2f} ± {:.2f}%\n",
                results.size(), 100.0 * raw.fraction, 100.0 * raw.standard_error,
                100.0 * by_length.fraction, 100.0 * by_length.standard_error);
}

nlohmann::ordered_json ChoiceSummaryJson(std::span<const ChoiceResult> results) {
  const Accuracy raw = AccuracyOf(results, &ChoiceResult::is_right);
  const Accuracy by_length = AccuracyOf(results, &ChoiceResult::is_right_by_length);
  return {{"questions", results.size()},
          {"accuracy", raw.fraction},
          {"accuracy_standard_error", raw.standard_error},
          {"accuracy_by_length", by_length.fraction},
          {"accuracy_by_length_standard_error", by_length.standard_error}};
}

}  // namespace cria::cli
