#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "core/numeric.h"
#include "ops/attention_kernels.h"

namespace cria::ops {
namespace {

using attention::HeadCache;
using attention::HeadQueries;

// If there are few queries, threads share spans of positions. The size of a span depends only on
// the number of visible positions; the number of spans is limited to limit the scratch.
constexpr size_t kMinSpanTokens = 256;
constexpr size_t kMaxSpans = 32;
// A tile's queries fill four of the widest vectors. With fewer queries than the second constant,
// tiles would leave lanes empty, and spans are faster.
constexpr size_t kTileQueries = 64;
constexpr size_t kMinTileQueries = 16;
static_assert(kTileQueries <= attention::kMaxRows && kMinTileQueries <= attention::kMaxRows);
// With fewer multiplications than this, waking other threads costs more than it gains.
constexpr size_t kSerialMultiplications = 32 * 1024;

constexpr size_t SpanTokens(size_t num_tokens) {
  const size_t needed = DivideRoundingUp(num_tokens, kMaxSpans);
  return std::max(kMinSpanTokens, attention::RoundUp(needed, attention::kBlockTokens));
}

size_t QueriesPerRow(const AttentionShape& shape) {
  return shape.num_attention_heads / shape.num_key_value_heads;
}

bool UsesTiles(const AttentionShape& shape, size_t num_rows) {
  return num_rows > 1 && num_rows * QueriesPerRow(shape) >= kMinTileQueries;
}

size_t RowsPerTile(const AttentionShape& shape) {
  return std::max<size_t>(1, kTileQueries / QueriesPerRow(shape));
}

// Maximum number of queries for which spans are used.
size_t MaxSpanQueries(const AttentionShape& shape, size_t max_rows) {
  const size_t per_row = QueriesPerRow(shape);
  return std::max(per_row, std::min(max_rows * per_row, kMinTileQueries - 1));
}

size_t WorkspaceBytes(const AttentionShape& shape, size_t max_rows) {
  size_t bytes = attention::SpanWorkspaceBytes(MaxSpanQueries(shape, max_rows), shape.head_dim);
  if (UsesTiles(shape, max_rows)) {
    const size_t rows = std::min(max_rows, RowsPerTile(shape));
    bytes =
        std::max(bytes, attention::TileWorkspaceBytes(rows * QueriesPerRow(shape), shape.head_dim));
  }
  return bytes;
}

HeadQueries QueriesOfHead(const AttentionShape& shape, const AttentionRows& rows, size_t head,
                          size_t first_row, size_t num_rows) {
  const size_t heads_per_row = QueriesPerRow(shape);
  const size_t offset = head * heads_per_row * shape.head_dim;
  return {.queries = rows.queries + first_row * rows.query_stride + offset,
          .query_stride = rows.query_stride,
          .output = rows.output + first_row * rows.output_stride + offset,
          .output_stride = rows.output_stride,
          .first_position = rows.first_position + first_row,
          .num_rows = num_rows,
          .heads_per_row = heads_per_row,
          .head_dim = shape.head_dim,
          .window_tokens = shape.window_tokens,
          .score_scale = shape.score_factor / std::sqrt(static_cast<float>(shape.head_dim))};
}

HeadCache CacheOfHead(const KvCacheView& cache, const KvPageTable& table, size_t head) {
  const size_t row = head * cache.num_rows();
  const size_t offset_bytes = row * cache.head_dim * KvElementBytes(cache.type);
  HeadCache result{.type = cache.type,
                   .num_rows = cache.num_rows(),
                   .keys = static_cast<const std::byte*>(cache.keys) + offset_bytes,
                   .values = static_cast<const std::byte*>(cache.values) + offset_bytes,
                   .table = table};
  if (cache.type == KvType::kInt8) {
    result.key_scales = cache.key_scales + row;
    result.value_scales = cache.value_scales + row;
  }
  return result;
}

// Calls `run(task, workspace)` for every task. Each thread has a workspace; the results do not
// depend on which thread runs a task.
template <typename Run>
void RunTasks(const ThreadPool& pool, bool is_shared, size_t num_tasks, std::byte* workspaces,
              size_t workspace_bytes, const Run& run) {
  if (is_shared) {
    pool.ParallelFor(num_tasks, [&](size_t task, size_t thread) {
      run(task, workspaces + thread * workspace_bytes);
    });
    return;
  }
  // Uses the pool even for one thread, because it sets the floating-point mode.
  pool.ParallelFor(1, [&](size_t) {
    for (size_t task = 0; task < num_tasks; ++task) run(task, workspaces);
  });
}

}  // namespace

uint64_t AttentionScratchBytes(const AttentionShape& shape, size_t max_rows, size_t context_tokens,
                               size_t num_threads) {
  const size_t max_spans = std::min(kMaxSpans, DivideRoundingUp(context_tokens, kMinSpanTokens));
  const uint64_t partial_floats = uint64_t{shape.num_key_value_heads} * max_spans *
                                  MaxSpanQueries(shape, max_rows) *
                                  attention::PartialFloats(shape.head_dim);
  return uint64_t{num_threads} * WorkspaceBytes(shape, max_rows) + partial_floats * sizeof(float);
}

void Attention(const AttentionShape& shape, const KvCacheView& cache, const AttentionRows& rows,
               std::span<std::byte> scratch, const ThreadPool& pool) {
  if (rows.num_rows == 0) return;
  const size_t num_heads = shape.num_key_value_heads;
  const HeadQueries first_queries = QueriesOfHead(shape, rows, 0, 0, 1);
  const size_t first_visible = first_queries.BeginPosition(0);
  const size_t first_span = first_queries.FirstSpan();
  const size_t end_visible = rows.first_position + rows.num_rows;
  const size_t num_tokens = end_visible - first_span;
  const size_t workspace_bytes = WorkspaceBytes(shape, rows.num_rows);
  const size_t multiplications =
      2 * rows.num_rows * shape.num_attention_heads * shape.head_dim * num_tokens;
  const bool is_shared = multiplications >= kSerialMultiplications;

  if (UsesTiles(shape, rows.num_rows)) {
    const size_t rows_per_tile = RowsPerTile(shape);
    const size_t num_tiles = DivideRoundingUp(rows.num_rows, rows_per_tile);
    RunTasks(pool, is_shared, num_heads * num_tiles, scratch.data(), workspace_bytes,
             [&](size_t task, std::byte* workspace) {
               const size_t head = task / num_tiles;
               const size_t first_row = task % num_tiles * rows_per_tile;
               const size_t tile_rows = std::min(rows_per_tile, rows.num_rows - first_row);
               attention::AttendTile(QueriesOfHead(shape, rows, head, first_row, tile_rows),
                                     CacheOfHead(cache, rows.table, head), workspace);
             });
    return;
  }

  const size_t span_tokens = SpanTokens(num_tokens);
  const size_t num_spans = DivideRoundingUp(num_tokens, span_tokens);
  const size_t span_floats =
      rows.num_rows * QueriesPerRow(shape) * attention::PartialFloats(shape.head_dim);
  auto* partials = reinterpret_cast<float*>(scratch.data() + pool.num_threads() * workspace_bytes);
  RunTasks(pool, is_shared, num_heads * num_spans, scratch.data(), workspace_bytes,
           [&](size_t task, std::byte* workspace) {
             const size_t head = task / num_spans;
             const size_t span = first_span + task % num_spans * span_tokens;
             const size_t begin = std::max(span, first_visible);
             const size_t end = std::min(span + span_tokens, end_visible);
             const HeadQueries queries = QueriesOfHead(shape, rows, head, 0, rows.num_rows);
             float* span_partials = partials + task * span_floats;
             attention::GatherSpan(queries, CacheOfHead(cache, rows.table, head), begin, end,
                                   workspace, span_partials);
             if (num_spans == 1) attention::CombineSpans(queries, span_partials, span_tokens);
           });
  if (num_spans == 1) return;
  pool.ParallelFor(num_heads, [&](size_t head) {
    attention::CombineSpans(QueriesOfHead(shape, rows, head, 0, rows.num_rows),
                            partials + head * num_spans * span_floats, span_tokens);
  });
}

}  // namespace cria::ops
