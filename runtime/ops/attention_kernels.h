#pragma once

// The inner functions of Attention; only its sources include this. Each processes one key/value
// head and the query heads that share it.
//
// GatherSpan with CombineSpans, and AttendTile, give bitwise the same results, and what a row gets
// does not depend on which rows are beside it. Therefore, all of them compute in one order:
// - Positions are divided into spans and these into blocks, which begin at multiples of their
//   sizes, wherever a window begins. The keys of a block have the same KeyShift and the same page
//   of offsets: so a block may be divided. Each span has an online softmax of its own, whose steps
//   are its blocks, and is merged with the spans before it.
// - A score of floats is (0 + 2) + (1 + 3) of four sums, each of every fourth product in order.
// - The weights of a block have as many sums as a vector has lanes, one for each position modulo
//   that number, of which the upper half is added to the lower one until one is left.
// - Except on Arm without dot products of int8, a block's int8 values are added up as integers
//   (value_digits-inl.h), which is exact, and their sum is added to that of the span's earlier
//   blocks.
// A position that a query must not attend to has the weight 0, which changes no sum.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/kv_cache_view.h"

namespace cria::ops::attention {

// Positions per step of the online softmax: a step's keys and values stay in the first-level cache.
// A step ends where a page ends, so that its rows are adjacent.
inline constexpr size_t kBlockTokens = kKvPageTokens;
// Floats in the widest vector of any target; rows of workspaces are padded to it.
inline constexpr size_t kPaddingFloats = 16;
// The score of a position that a query must not attend to, and the maximum before the first score.
// It is finite, so that differences are never NaN.
inline constexpr float kMaskedScore = std::numeric_limits<float>::lowest();

// If there are few queries, threads share the spans of positions, each of whose results takes
// scratch.
inline constexpr size_t kSpanTokens = 256;
static_assert(kSpanTokens % kBlockTokens == 0);

// Maximum number of rows that are processed together. Their windows all begin in the first two
// pages. A row whose window begins behind the first block first adds up weights of 1 for masked
// scores; its first score that is not masked, in this span or in the next, sets these sums to 0.
inline constexpr size_t kMaxRows = kBlockTokens;

constexpr size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The queries of up to kMaxRows rows that read one key/value head: query i is head
// i % heads_per_row of row i / heads_per_row.
struct HeadQueries {
  const float* queries = nullptr;  // The first row's first head; heads of a row are adjacent.
  size_t query_stride = 0;
  float* output = nullptr;
  size_t output_stride = 0;
  size_t first_position = 0;
  size_t num_rows = 0;
  size_t heads_per_row = 0;
  size_t head_dim = 0;
  size_t window_tokens = 0;      // 0: there is none.
  size_t begin_position = 0;     // No query attends to positions before it.
  float score_scale = 0.0f;      // Factor of a query's product with a key.
  float score_cap = 0.0f;        // 0: there is none.
  const float* sinks = nullptr;  // [heads_per_row], or null.

  size_t num_queries() const { return num_rows * heads_per_row; }
  const float* Query(size_t i) const {
    return queries + i / heads_per_row * query_stride + i % heads_per_row * head_dim;
  }
  float* Output(size_t i) const {
    return output + i / heads_per_row * output_stride + i % heads_per_row * head_dim;
  }
  // Query i attends to positions from BeginPosition to before EndPosition.
  size_t EndPosition(size_t i) const { return first_position + i / heads_per_row + 1; }
  size_t BeginPosition(size_t i) const {
    if (window_tokens == 0) return begin_position;
    const size_t end = EndPosition(i);
    return std::max(begin_position, end - std::min(end, window_tokens));
  }
  // What the sum of query i's weighted values is multiplied by, from the largest score and the sum
  // of exp(score - largest). A sink that is larger by so much that its exp overflows leaves 0.
  float InverseSum(size_t i, float largest, float sum) const {
    if (sinks == nullptr) return 1.0f / sum;
    return 1.0f / (sum + std::exp(sinks[i % heads_per_row] - largest));
  }
  // Where the span begins in which the first query's window begins.
  size_t FirstSpan() const { return BeginPosition(0) / kSpanTokens * kSpanTokens; }
};

// One head of a KvCacheView, with the pages of the queries' sequence.
struct HeadCache {
  KvType type = KvType::kF32;
  size_t num_rows = 0;                  // After these begin the rows of the next head.
  const void* keys = nullptr;           // [num_rows][head_dim]
  const void* values = nullptr;         // The same shape.
  const float* key_scales = nullptr;    // [num_rows]
  const float* value_scales = nullptr;  // [num_rows]
  // This head's; null if no score lacks anything, or all scores of a query lack the same.
  KeyOffsets key_offsets;
  size_t rotary_dim = 0;
  KvPageTable table;
  KeyShift shift;

  // The block that begins at `position` ends here, or at `end` if that comes first.
  size_t BlockEnd(size_t position, size_t end) const {
    end = std::min(end, (position / kBlockTokens + 1) * kBlockTokens);
    if (shift.distance == 0) return end;
    if (!shift.IsShifted(position)) return std::min(end, shift.first);
    if (key_offsets.middles == nullptr) return end;
    const size_t row = (position + shift.distance) % kBlockTokens;
    return std::min(end, position + kBlockTokens - row);
  }
};

// The positions of one block that are attended to.
struct Block {
  Block(const KvPageTable& table, size_t begin_position, size_t end_position)
      : page_position(begin_position / kBlockTokens * kBlockTokens),
        page_row(table.Row(page_position)),
        begin(begin_position - page_position),
        end(end_position - page_position) {}

  size_t page_position;  // The position of the page's first row.
  size_t page_row;
  size_t begin;  // Rows of the page, at most kBlockTokens.
  size_t end;
};

// The partial result of one query for one span of positions: the accumulator [head_dim], padded,
// then the largest score and the sum of exp(score - largest).
constexpr size_t PartialFloats(size_t head_dim) {
  return RoundUp(head_dim, kPaddingFloats) + kPaddingFloats;
}

// For few queries: the lanes of a vector are a head's dimensions.
size_t SpanWorkspaceBytes(size_t num_queries, size_t head_dim);

// Computes the partial results of positions [begin, end), at least one, into `partials`,
// [num_queries][PartialFloats]. For a query that attends to none of them, the values are finite but
// have no meaning.
void GatherSpan(const HeadQueries& queries, const HeadCache& cache, size_t begin, size_t end,
                std::byte* workspace, float* partials);

// Computes the outputs from the partials of all spans from FirstSpan() on, which it overwrites:
// [spans][num_queries][PartialFloats].
void CombineSpans(const HeadQueries& queries, float* partials);

// For many queries: each lane of a vector is a query.
size_t TileWorkspaceBytes(size_t num_queries, size_t head_dim);

void AttendTile(const HeadQueries& queries, const HeadCache& cache, std::byte* workspace);

}  // namespace cria::ops::attention
