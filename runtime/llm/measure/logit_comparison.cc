#include "llm/measure/logit_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/open_sequence.h"
#include "llm/measure/log_sum_exp.h"

namespace cria {
namespace {

void AddPosition(std::span<const float> reference, std::span<const float> logits,
                 LogitComparison& comparison) {
  const double reference_sum = LogSumExp(reference);
  const double sum = LogSumExp(logits);
  double divergence = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double difference = double{reference[i]} - double{logits[i]};
    const double magnitude =
        std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::abs(difference);
    comparison.largest_difference = std::max(comparison.largest_difference, magnitude);
    const double log_probability = double{reference[i]} - reference_sum;
    divergence += std::exp(log_probability) * (difference - reference_sum + sum);
  }
  comparison.total_divergence += divergence;
  const auto top = [](std::span<const float> values) {
    return std::ranges::max_element(values) - values.begin();
  };
  comparison.num_same_top += top(reference) == top(logits) ? 1 : 0;
  ++comparison.num_positions;
}

}  // namespace

Status AddComparison(TokenModel& reference, TokenModel& model, std::span<const int32_t> tokens,
                     LogitComparison& comparison) {
  if (reference.vocab_size() != model.vocab_size()) {
    return Fail(ErrorCode::kUsage, "the two models have vocabularies of different sizes");
  }
  const size_t length =
      std::min({tokens.size(), reference.context_tokens(), model.context_tokens()});
  const size_t chunk = std::min(reference.chunk_tokens(), model.chunk_tokens());
  CRIA_ASSIGN_OR_RETURN(const OpenSequence reference_sequence,
                        OpenSequence::Create(reference.pages(), length));
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence, OpenSequence::Create(model.pages(), length));
  for (size_t first = 0; first < length; first += chunk) {
    const auto part = tokens.subspan(first, std::min(chunk, length - first));
    CRIA_RETURN_IF_ERROR(
        reference.ForwardSequence(reference_sequence.id(), part, first, part.size()));
    CRIA_RETURN_IF_ERROR(model.ForwardSequence(sequence.id(), part, first, part.size()));
    for (size_t row = 0; row < part.size(); ++row) {
      CRIA_ASSIGN_OR_RETURN(const std::span<const float> expected, reference.Logits(row));
      CRIA_ASSIGN_OR_RETURN(const std::span<const float> logits, model.Logits(row));
      AddPosition(expected, logits, comparison);
    }
  }
  return {};
}

}  // namespace cria
