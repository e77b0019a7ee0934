#include "llm/measure/perplexity.h"

#include <vector>

#include "decode/open_sequence.h"
#include "llm/measure/forward_rows.h"
#include "llm/measure/log_sum_exp.h"
#include "llm/measure/text_windows.h"

namespace cria {

Result<Perplexity> MeasurePerplexity(TokenModel& model, std::span<const int32_t> tokens,
                                     int32_t bos_token_id, size_t window_tokens,
                                     const std::function<void(const Perplexity&)>& on_progress) {
  CRIA_ASSIGN_OR_RETURN(const TextWindows windows,
                        TextWindows::Create(tokens, bos_token_id, window_tokens,
                                            model.context_tokens(), model.vocab_size()));
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(model.sequences(), window_tokens));
  const ModelSequence sequences[] = {{&model, sequence.id()}};
  Perplexity result;
  double total = 0.0;
  for (size_t index = 0; index < windows.num_windows(); ++index) {
    const std::vector<int32_t> inputs = windows.Inputs(index);
    const std::span<const int32_t> targets = windows.Targets(index);
    CRIA_RETURN_IF_ERROR(ForwardRows(
        sequences, inputs, 0, inputs.size(),
        [&](size_t row, std::span<const std::span<const float>> logits) -> Status {
          total += LogSumExp(logits[0]) - double{logits[0][static_cast<size_t>(targets[row])]};
          return {};
        }));
    result.predicted_tokens += targets.size();
    result.mean_negative_log_likelihood = total / static_cast<double>(result.predicted_tokens);
    on_progress(result);
  }
  return result;
}

}  // namespace cria
