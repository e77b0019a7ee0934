#include "llm/measure/logit_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/open_sequence.h"
#include "llm/measure/forward_rows.h"
#include "llm/measure/log_sum_exp.h"

namespace cria {

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

Status AddComparison(TokenModel& reference, TokenModel& model, std::span<const int32_t> tokens,
                     LogitComparison& comparison) {
  if (reference.vocab_size() != model.vocab_size()) {
    return Fail(ErrorCode::kUsage, "the two models have vocabularies of different sizes");
  }
  const size_t length =
      std::min({tokens.size(), reference.context_tokens(), model.context_tokens()});
  CRIA_ASSIGN_OR_RETURN(const OpenSequence reference_sequence,
                        OpenSequence::Create(reference.sequences(), length));
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(model.sequences(), length));
  const ModelSequence sequences[] = {{&reference, reference_sequence.id()},
                                     {&model, sequence.id()}};
  return ForwardRows(sequences, tokens.first(length), 0, length,
                     [&](size_t, std::span<const std::span<const float>> logits) -> Status {
                       AddPosition(logits[0], logits[1], comparison);
                       return {};
                     });
}

}  // namespace cria
