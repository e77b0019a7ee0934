#include "decode/decoder_options.h"

#include <algorithm>

#include "core/format.h"

namespace cria {

DecoderOptions EffectiveOptions(const DecoderOptions& options) {
  DecoderOptions effective = options;
  effective.chunk_tokens = std::min(options.chunk_tokens, options.context_tokens);
  effective.max_logit_rows =
      std::min(std::max(options.max_logit_rows, options.num_sequences), effective.chunk_tokens);
  return effective;
}

size_t MaxSequenceTokens(const ModelConfig& config, const DecoderOptions& options) {
  return std::min<size_t>(options.context_tokens, config.longest_context());
}

KvPages::Shape ShapeOfKvPages(const ModelConfig& config, const DecoderOptions& options) {
  KvPages::Shape shape = {.num_pages = NumKvPages(options.context_tokens),
                          .num_sequences = options.num_sequences + options.num_kept_sequences,
                          .sequence_tokens = MaxSequenceTokens(config, options),
                          .chunk_tokens = EffectiveOptions(options).chunk_tokens,
                          .windows = {},
                          .num_checkpoints = options.num_checkpoints,
                          // A norm behind rope multiplies both channels of a pair by numbers that
                          // may differ. The converter leaves those of keys to queries.
                          .turns_queries = !config.qk_norm_after_rope};
  for (const LayerKind& kind : config.layer_kinds) {
    if (kind.has_attention()) shape.windows.push_back(kind.sliding_window);
  }
  return shape;
}

Status ValidateDecoderOptions(const ModelConfig& config, const DecoderOptions& options) {
  if (options.num_sequences == 0 || options.num_sequences > kMaxSequences) {
    return Fail(ErrorCode::kUsage,
                Format("{} sequences are outside 1 to {}", options.num_sequences, kMaxSequences));
  }
  if (options.num_kept_sequences > kMaxKeptSequences) {
    return Fail(ErrorCode::kUsage, Format("{} sequences that are kept are outside 0 to {}",
                                          options.num_kept_sequences, kMaxKeptSequences));
  }
  const uint64_t longest = uint64_t{config.longest_context()} * options.num_sequences;
  if (options.context_tokens == 0 || options.context_tokens > longest) {
    return Fail(ErrorCode::kUsage,
                Format("a context of {} tokens is outside 1 to {}, which the model was made for{}",
                       options.context_tokens, longest,
                       options.num_sequences == 1 ? "" : " times the number of sequences"),
                RemedyKind::kChooseContext);
  }
  constexpr size_t kMaxChunkTokens = 4096;
  if (options.chunk_tokens == 0 || options.chunk_tokens > kMaxChunkTokens) {
    return Fail(ErrorCode::kUsage, Format("a prefill chunk of {} tokens is outside 1 to {}",
                                          options.chunk_tokens, kMaxChunkTokens));
  }
  const size_t num_pages = NumKvPages(options.context_tokens);
  if (options.num_sequences > num_pages) {
    return Fail(ErrorCode::kUsage,
                Format("{} sequences need a page of {} tokens each, and a context of {} has "
                       "{} pages",
                       options.num_sequences, kKvPageTokens, options.context_tokens, num_pages),
                RemedyKind::kLargerContext);
  }
  if (options.num_sequences > EffectiveOptions(options).chunk_tokens) {
    return Fail(ErrorCode::kUsage, Format("{} sequences do not fit a prefill chunk of {} tokens",
                                          options.num_sequences, options.chunk_tokens));
  }
  constexpr size_t kMaxCheckpoints = 4096;
  if (options.num_checkpoints > kMaxCheckpoints) {
    return Fail(ErrorCode::kUsage, Format("{} checkpoints are outside 0 to {}",
                                          options.num_checkpoints, kMaxCheckpoints));
  }
  if (options.revocable_tokens == 0 || options.revocable_tokens > kMaxChunkTokens) {
    return Fail(ErrorCode::kUsage, Format("{} revocable tokens are outside 1 to {}",
                                          options.revocable_tokens, kMaxChunkTokens));
  }
  if (options.max_logit_rows == 0) {
    return Fail(ErrorCode::kUsage, "a product of 0 rows of logits computes nothing");
  }
  if (options.has_mtp && config.mtp_num_hidden_layers == 0) {
    return Fail(ErrorCode::kUsage, "the model has no layer that guesses tokens (mtp)");
  }
  return {};
}

}  // namespace cria
