#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/kv_pages.h"

namespace cria {

// Tokens of one sequence at consecutive positions.
struct BatchRun {
  SequenceId sequence = 0;
  size_t first_position = 0;
  size_t num_tokens = 0;
  // How many of the last tokens are followed by logits, or have hidden states that are read.
  size_t num_logits = 0;
  // How many of the largest logits are needed of each of these rows; 0: all. Of a model that
  // several ranks compute, the other logits may be minus infinity.
  size_t num_candidates = 0;
};

// What one Forward computes: rows of several sequences, each with at most one run. The weights are
// read once for all of them.
struct Batch {
  std::span<const int32_t> tokens;  // The runs' tokens, one run after another.
  std::span<const BatchRun> runs;
  // For each token null, or a vector of [hidden_size] numbers that takes the place of the token's
  // row of the embedding table, such as a part of an image; empty: there are no vectors. The ids of
  // such tokens have no meaning.
  std::span<const float* const> embeddings = {};

  bool has_embedding(size_t row) const { return !embeddings.empty() && embeddings[row] != nullptr; }
};

// What a batch may have at most.
struct BatchLimits {
  size_t chunk_tokens = 0;
  size_t num_sequences = 0;
  size_t context_tokens = 0;  // The most tokens of a sequence.
  size_t vocab_size = 0;
};

// Fails unless the runs have all tokens of the batch, and all are within the limits.
Status CheckBatch(const Batch& batch, const BatchLimits& limits);

}  // namespace cria
