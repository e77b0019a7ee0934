#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "core/numeric.h"
#include "ops/attention_kernels.h"

namespace cria::ops {
namespace {

using attention::HeadCache;
using attention::HeadQueries;

// A tile's queries fill four of the widest vectors. With fewer queries than the second constant,
// tiles would leave lanes empty, and spans are faster.
constexpr size_t kTileQueries = 64;
constexpr size_t kMinTileQueries = 16;
static_assert(kTileQueries <= attention::kMaxRows && kMinTileQueries <= attention::kMaxRows);
// The alignment of arrays in the scratch.
constexpr size_t kAlignment = 64;
// With fewer multiplications than this, waking other threads costs more than it gains.
constexpr size_t kSerialMultiplications = 32 * 1024;

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
          .begin_position = shape.begin_position,
          .score_scale = shape.score_factor / std::sqrt(static_cast<float>(shape.head_dim)),
          .score_cap = shape.score_cap,
          .sinks = shape.sinks == nullptr ? nullptr : shape.sinks + head * heads_per_row};
}

HeadCache CacheOfHead(const KvCacheView& cache, const AttentionRows& rows, size_t head) {
  const size_t row = head * cache.num_rows();
  const size_t offset_bytes = row * cache.head_dim * KvElementBytes(cache.type);
  HeadCache result{.type = cache.type,
                   .num_rows = cache.num_rows(),
                   .keys = static_cast<const std::byte*>(cache.keys) + offset_bytes,
                   .values = static_cast<const std::byte*>(cache.values) + offset_bytes,
                   .rotary_dim = cache.rotary_channels(),
                   .table = rows.table,
                   .shift = rows.shift};
  if (cache.type == KvType::kInt8) {
    result.key_scales = cache.key_scales + row;
    result.value_scales = cache.value_scales + row;
    if (cache.key_offsets.middles != nullptr && cache.key_offsets.cosines != nullptr) {
      result.key_offsets = cache.key_offsets;
      result.key_offsets.middles += head * cache.head_dim;
      result.key_offsets.slopes += head * cache.head_dim;
      if (cache.key_offsets.turned_pairs != nullptr) {
        result.key_offsets.turned_pairs += head * KeyOffsets::kMaxTurnedPairs;
      }
    }
  }
  return result;
}

// A run's place among all tasks of a call: each key/value head has num_parts tasks, which are tiles
// of rows or spans of positions.
struct RunTasks {
  size_t first_task = 0;
  size_t num_parts = 0;
  // [num_key_value_heads][num_parts][queries][PartialFloats]; null: the parts are tiles.
  float* partials = nullptr;
};

size_t TableBytes(size_t num_runs) {
  return attention::RoundUp(num_runs * sizeof(RunTasks), kAlignment);
}

size_t SpanFloats(const AttentionShape& shape, const AttentionRows& rows) {
  return rows.num_rows * QueriesPerRow(shape) * attention::PartialFloats(shape.head_dim);
}

struct TaskTotals {
  size_t num_tasks = 0;
  size_t multiplications = 0;
  bool has_spans_to_combine = false;  // Whether a run has more than one span.
};

// Divides the runs into tasks; `partials` is where those of all spans are placed.
TaskTotals PlaceTasks(const AttentionShape& shape, std::span<const AttentionRows> runs,
                      std::span<RunTasks> all_tasks, float* partials) {
  TaskTotals totals;
  for (size_t i = 0; i < runs.size(); ++i) {
    const AttentionRows& rows = runs[i];
    RunTasks& tasks = all_tasks[i];
    tasks = {.first_task = totals.num_tasks};
    if (rows.num_rows == 0) continue;
    const size_t end_visible = rows.first_position + rows.num_rows;
    const size_t num_tokens = end_visible - QueriesOfHead(shape, rows, 0, 0, 1).FirstSpan();
    if (UsesTiles(shape, rows.num_rows)) {
      tasks.num_parts = DivideRoundingUp(rows.num_rows, RowsPerTile(shape));
    } else {
      tasks.num_parts = DivideRoundingUp(num_tokens, attention::kSpanTokens);
      tasks.partials = partials;
      partials += shape.num_key_value_heads * tasks.num_parts * SpanFloats(shape, rows);
      totals.has_spans_to_combine = totals.has_spans_to_combine || tasks.num_parts > 1;
    }
    totals.num_tasks += shape.num_key_value_heads * tasks.num_parts;
    totals.multiplications +=
        2 * rows.num_rows * shape.num_attention_heads * shape.head_dim * num_tokens;
  }
  return totals;
}

void RunTile(const AttentionShape& shape, const KvCacheView& cache, const AttentionRows& rows,
             const RunTasks& tasks, size_t task, std::byte* workspace) {
  const size_t head = task / tasks.num_parts;
  const size_t first_row = task % tasks.num_parts * RowsPerTile(shape);
  const size_t tile_rows = std::min(RowsPerTile(shape), rows.num_rows - first_row);
  attention::AttendTile(QueriesOfHead(shape, rows, head, first_row, tile_rows),
                        CacheOfHead(cache, rows, head), workspace);
}

void RunSpan(const AttentionShape& shape, const KvCacheView& cache, const AttentionRows& rows,
             const RunTasks& tasks, size_t task, std::byte* workspace) {
  const size_t head = task / tasks.num_parts;
  const HeadQueries queries = QueriesOfHead(shape, rows, head, 0, rows.num_rows);
  const size_t span = queries.FirstSpan() + task % tasks.num_parts * attention::kSpanTokens;
  const size_t begin = std::max(span, queries.BeginPosition(0));
  const size_t end = std::min(span + attention::kSpanTokens, rows.first_position + rows.num_rows);
  float* const partials = tasks.partials + task * SpanFloats(shape, rows);
  attention::GatherSpan(queries, CacheOfHead(cache, rows, head), begin, end, workspace, partials);
  if (tasks.num_parts == 1) attention::CombineSpans(queries, partials);
}

}  // namespace

uint64_t AttentionScratchBytes(const AttentionShape& shape, const AttentionLimits& limits,
                               size_t num_threads) {
  const size_t max_spans = DivideRoundingUp(limits.context_tokens, attention::kSpanTokens);
  const size_t queries = std::min(limits.runs * MaxSpanQueries(shape, limits.rows),
                                  limits.rows * QueriesPerRow(shape));
  const uint64_t partial_floats = uint64_t{shape.num_key_value_heads} * max_spans * queries *
                                  attention::PartialFloats(shape.head_dim);
  return uint64_t{num_threads} * WorkspaceBytes(shape, limits.rows) + TableBytes(limits.runs) +
         partial_floats * sizeof(float);
}

void Attention(const AttentionShape& shape, const KvCacheView& cache,
               std::span<const AttentionRows> runs, std::span<std::byte> scratch,
               const ThreadPool& pool) {
  const size_t num_heads = shape.num_key_value_heads;
  size_t max_rows = 0;
  for (const AttentionRows& rows : runs) max_rows = std::max(max_rows, rows.num_rows);
  if (max_rows == 0) return;
  const size_t workspace_bytes = WorkspaceBytes(shape, max_rows);
  std::byte* const workspaces = scratch.data();
  std::byte* const table = workspaces + pool.num_threads() * workspace_bytes;
  const std::span all_tasks(reinterpret_cast<RunTasks*>(table), runs.size());
  const TaskTotals totals =
      PlaceTasks(shape, runs, all_tasks, reinterpret_cast<float*>(table + TableBytes(runs.size())));

  const auto run_task = [&](size_t index, std::byte* workspace) {
    const auto after = std::ranges::upper_bound(all_tasks, index, {}, &RunTasks::first_task);
    const size_t run = static_cast<size_t>(after - all_tasks.begin()) - 1;
    const RunTasks& tasks = all_tasks[run];
    const auto function = tasks.partials == nullptr ? RunTile : RunSpan;
    function(shape, cache, runs[run], tasks, index - tasks.first_task, workspace);
  };
  if (totals.multiplications < kSerialMultiplications) {
    // Uses the pool even for one thread, because it sets the floating-point mode.
    pool.ParallelFor(1, [&](size_t) {
      for (size_t task = 0; task < totals.num_tasks; ++task) run_task(task, workspaces);
    });
  } else {
    // Each thread has a workspace; the results do not depend on which thread runs a task.
    pool.ParallelFor(totals.num_tasks, [&](size_t task, size_t thread) {
      run_task(task, workspaces + thread * workspace_bytes);
    });
  }
  if (!totals.has_spans_to_combine) return;
  pool.ParallelFor(runs.size() * num_heads, [&](size_t index) {
    const AttentionRows& rows = runs[index / num_heads];
    const RunTasks& tasks = all_tasks[index / num_heads];
    if (tasks.partials == nullptr || tasks.num_parts == 1) return;
    const size_t head = index % num_heads;
    attention::CombineSpans(QueriesOfHead(shape, rows, head, 0, rows.num_rows),
                            tasks.partials + head * tasks.num_parts * SpanFloats(shape, rows));
  });
}

}  // namespace cria::ops
