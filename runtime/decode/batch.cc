#include "decode/batch.h"

#include "core/format.h"

namespace cria {

Status CheckBatch(const Batch& batch, const BatchLimits& limits) {
  const size_t context = limits.context_tokens;
  const size_t num_tokens = batch.tokens.size();
  if (num_tokens > limits.chunk_tokens || batch.runs.size() > limits.num_sequences) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} tokens of {} sequences do not fit a chunk of {} tokens of {}",
                       num_tokens, batch.runs.size(), limits.chunk_tokens, limits.num_sequences));
  }
  size_t run_tokens = 0;
  for (const BatchRun& run : batch.runs) {
    if (run.num_tokens == 0 || run.num_tokens > num_tokens || run.first_position > context ||
        run.num_tokens > context - run.first_position) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("{} tokens at position {} do not fit a context of {}", run.num_tokens,
                         run.first_position, context));
    }
    if (run.num_logits > run.num_tokens) {
      return Fail(ErrorCode::kOutOfRange, Format("{} rows of logits are more than the {} tokens",
                                                 run.num_logits, run.num_tokens));
    }
    run_tokens += run.num_tokens;
  }
  if (num_tokens == 0 || run_tokens != num_tokens) {
    return Fail(ErrorCode::kOutOfRange,
                Format("a batch of {} tokens has runs of {}", num_tokens, run_tokens));
  }
  if (!batch.embeddings.empty() && batch.embeddings.size() != num_tokens) {
    return Fail(ErrorCode::kOutOfRange, Format("a batch of {} tokens has {} embeddings", num_tokens,
                                               batch.embeddings.size()));
  }
  for (size_t row = 0; row < num_tokens; ++row) {
    const int32_t id = batch.tokens[row];
    if (batch.has_embedding(row)) continue;
    if (id < 0 || static_cast<uint32_t>(id) >= limits.vocab_size) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("token id {} is outside the vocabulary of {}", id, limits.vocab_size));
    }
  }
  return {};
}

}  // namespace cria
