#include "llm/measure/perplexity.h"

#include <algorithm>
#include <format>
#include <vector>

#include "decode/open_sequence.h"
#include "llm/measure/log_sum_exp.h"

namespace cria {
namespace {

double NegativeLogLikelihood(std::span<const float> logits, int32_t token) {
  return LogSumExp(logits) - double{logits[static_cast<size_t>(token)]};
}

}  // namespace

Result<Perplexity> MeasurePerplexity(TokenModel& model, std::span<const int32_t> tokens,
                                     int32_t bos_token_id, size_t window_tokens,
                                     const std::function<void(const Perplexity&)>& on_progress) {
  if (tokens.empty())
    return Fail(ErrorCode::kUsage, "the text is empty: there is nothing to predict");
  if (bos_token_id < 0) {
    return Fail(ErrorCode::kUnsupported,
                "the model has no BOS token, which every window must begin with");
  }
  if (window_tokens < 2 || window_tokens > model.context_tokens()) {
    return Fail(ErrorCode::kUsage, std::format("a window of {} tokens is outside 2 to {}",
                                               window_tokens, model.context_tokens()));
  }
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= model.vocab_size()) {
      return Fail(ErrorCode::kOutOfRange, std::format("token id {} is outside the vocabulary of {}",
                                                      token, model.vocab_size()));
    }
  }
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(model.pages(), window_tokens));
  Perplexity result;
  double total = 0.0;
  std::vector<int32_t> inputs;
  while (!tokens.empty()) {
    const auto window = tokens.first(std::min(tokens.size(), window_tokens - 1));
    tokens = tokens.subspan(window.size());
    inputs.assign(1, bos_token_id);
    inputs.insert(inputs.end(), window.begin(), window.end() - 1);
    for (size_t first = 0; first < inputs.size(); first += model.chunk_tokens()) {
      const size_t count = std::min(model.chunk_tokens(), inputs.size() - first);
      CRIA_RETURN_IF_ERROR(model.ForwardSequence(
          sequence.id(), std::span(inputs).subspan(first, count), first, count));
      for (size_t row = 0; row < count; ++row) {
        CRIA_ASSIGN_OR_RETURN(const std::span<const float> logits, model.Logits(row));
        total += NegativeLogLikelihood(logits, window[first + row]);
      }
    }
    result.predicted_tokens += window.size();
    result.mean_negative_log_likelihood = total / static_cast<double>(result.predicted_tokens);
    on_progress(result);
  }
  return result;
}

}  // namespace cria
