#pragma once

#include <cstddef>

#include "cria/error.h"
#include "decode/kv_pages.h"
#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Maximum number of sequences of a decoder.
inline constexpr size_t kMaxSequences = 256;

// Maximum number of further sequences that only keep what they have.
inline constexpr size_t kMaxKeptSequences = 1024;

struct DecoderOptions {
  size_t context_tokens = 2048;  // Tokens of all sequences together.
  size_t chunk_tokens = 128;     // Maximum number of tokens that one Forward takes.
  KvType kv_type = KvType::kF32;
  // Maximum number of sequences that share the context. Each may be as long as the context, or as
  // the model's longest.
  size_t num_sequences = 1;
  // So many more sequences only keep what they have, for texts that begin like them later: they are
  // never run beside as many others.
  size_t num_kept_sequences = 0;
  // Maximum number of rows of logits that one product computes, but at least one for each sequence.
  // Only the time of more rows than these depends on it. More than chunk_tokens are as many as
  // chunk_tokens.
  size_t max_logit_rows = 1;
  // How many checkpoints there are of all sequences (Sequences), for models that need any.
  size_t num_checkpoints = 0;
  // A sequence can always be truncated by the tokens of its last Forward, of more than these by so
  // many, at least one: a token that is run again, and drafts.
  size_t revocable_tokens = 1;
  // The layer of the model that guesses tokens (MtpLayer) is loaded and follows every batch.
  bool has_mtp = false;
};

// The options as a decoder uses them: what is more than it can be is reduced, and what is less than
// it must be is raised.
DecoderOptions EffectiveOptions(const DecoderOptions& options);

// Maximum number of tokens of one sequence.
size_t MaxSequenceTokens(const ModelConfig& config, const DecoderOptions& options);

// The context is rounded up to whole pages. The windows are those of the kinds of layers.
KvPages::Shape ShapeOfKvPages(const ModelConfig& config, const DecoderOptions& options);

// Checks the sizes; the error names the option that is wrong.
Status ValidateDecoderOptions(const ModelConfig& config, const DecoderOptions& options);

// What decides how much memory each part of a decoder needs.
struct DecoderShape {
  const ModelConfig& config;
  DecoderOptions options;  // EffectiveOptions.
  size_t num_threads = 1;  // The most that compute at once.

  size_t sequence_tokens() const { return MaxSequenceTokens(config, options); }
  // The layers that keep something of sequences: those of the model, and with has_mtp the layer
  // that guesses, which has keys and values, and behind it the hidden state that it reads.
  size_t num_keeping_layers() const { return config.num_hidden_layers + (options.has_mtp ? 2 : 0); }
  bool is_mtp_hidden(size_t layer) const { return layer == size_t{config.num_hidden_layers} + 1; }
};

}  // namespace cria
