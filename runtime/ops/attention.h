#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/thread_pool.h"
#include "ops/kv_cache_view.h"

namespace cria::ops {

struct AttentionShape {
  size_t num_attention_heads = 0;
  size_t num_key_value_heads = 0;
  size_t head_dim = 0;
  // How many positions a query attends to, its own included; 0: all so far.
  size_t window_tokens = 0;
  // Positions before this one are attended to by none, and their own rows have no result.
  size_t begin_position = 0;
  float score_factor = 1.0f;
  // If it is not 0, each score s, with its factors, becomes score_cap * tanh(s / score_cap).
  float score_cap = 0.0f;
  // [num_attention_heads], or null: the score that each head gives to no position (Xiao et al.
  // 2024, "attention sinks", as gpt-oss learns them). It takes a part of the softmax, but adds no
  // value.
  const float* sinks = nullptr;
};

// Rows at consecutive positions of one sequence, and their results.
struct AttentionRows {
  KvPageTable table;  // The sequence's pages, up to the last row's position at least.
  KeyShift shift;     // The sequence has it, and the queries were turned by it, too.
  size_t first_position = 0;
  size_t num_rows = 0;
  const float* queries = nullptr;  // Row r at r * query_stride: [num_attention_heads][head_dim].
  size_t query_stride = 0;         // In floats.
  float* output = nullptr;         // Row r at r * output_stride: the same shape.
  size_t output_stride = 0;
};

// How much is attended to at once, at most.
struct AttentionLimits {
  size_t rows = 0;  // Rows of all runs together.
  size_t runs = 1;
  size_t context_tokens = 0;  // The most tokens of a run's sequence.
};

// Bytes of scratch that Attention needs within `limits`, for `num_threads` threads and any window.
uint64_t AttentionScratchBytes(const AttentionShape& shape, const AttentionLimits& limits,
                               size_t num_threads);

// Causal grouped-query attention (Vaswani et al. 2017; Ainslie et al. 2023) for the rows of several
// sequences: row r of a run attends to the cached positions up to first_position + r, its own
// included, with scores multiplied by score_factor / sqrt(head_dim). With a window, it attends to
// the last window_tokens of them (Beltagy et al. 2020), and no page before that on which the first
// row's window begins is read. Query head h reads key/value head h / (heads / key_value_heads).
// Softmax is computed online (Milakov and Gimelshein 2018), without a matrix of scores. The result
// of a row is bitwise the same for every number of threads and whatever rows are computed in the
// same call, of its sequence or of others. `scratch` must be aligned to 64 bytes and have
// AttentionScratchBytes.
void Attention(const AttentionShape& shape, const KvCacheView& cache,
               std::span<const AttentionRows> runs, std::span<std::byte> scratch,
               const ThreadPool& pool);

}  // namespace cria::ops
