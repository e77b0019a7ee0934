#include "ops/products/tiled_product.h"

#include <algorithm>

#include "core/numeric.h"

namespace cria::ops {
namespace {

// About what fits into a core's second-level cache together with a few rows.
constexpr size_t kTaskBytes = size_t{128} * 1024;
// Handing tasks to other threads costs about half a microsecond: below this, one thread is faster.
constexpr size_t kMinSharedMultiplications = size_t{128} * 1024;
// With several tasks for each thread, all threads finish at about the same time.
constexpr size_t kTasksPerThread = 8;

// What a kernel multiplies in one call, at most.
struct KernelCall {
  KernelCall(const TileKernel& kernel, size_t num_rows) {
    if (kernel.multiply_many == nullptr || num_rows < kernel.min_many_rows) {
      multiply = kernel.multiply;
      max_rows = kernel.max_rows;
    } else {
      multiply = kernel.multiply_many;
      max_rows = kMaxManyRows;
      num_tiles = kernel.many_tiles;
    }
  }

  void (*multiply)(const TileProduct& product);
  size_t max_rows;
  size_t num_tiles = 1;
};

// Multiplies all rows by the tiles of one call, in groups of nearly equal size.
void MultiplyGroups(const KernelCall& call, TileProduct product) {
  const size_t num_rows = product.rows.num_rows;
  const size_t num_groups = DivideRoundingUp(num_rows, call.max_rows);
  for (size_t group = 0, first = 0; group < num_groups; ++group) {
    const size_t size = DivideRoundingUp(num_rows - first, num_groups - group);
    product.rows.num_rows = size;
    call.multiply(product);
    product.rows.values += size * product.rows.stride;
    product.output += size * product.output_stride;
    first += size;
  }
}

// Multiplies all rows by consecutive tiles, from product.tile on, that have `num_outputs` outputs.
void MultiplyByTiles(const TileKernel& kernel, size_t num_outputs, TileProduct product) {
  const KernelCall call(kernel, product.rows.num_rows);
  const size_t call_bytes = call.num_tiles * product.tiles.tile_bytes();
  for (; num_outputs > 0; num_outputs -= product.num_outputs) {
    product.num_outputs = std::min(call.num_tiles * kernel.tile_outputs, num_outputs);
    MultiplyGroups(call, product);
    product.tile += call_bytes;
    product.output += product.num_outputs;
  }
}

}  // namespace

PackedTiles TilesOf(const TileKernel& kernel, size_t input_channels, size_t block_size) {
  return {.outputs = kernel.tile_outputs,
          .group_inputs = kernel.group_inputs,
          .input_channels = input_channels,
          .block_size = block_size};
}

PackedTiles TilesOf(const BlockFormat& format, size_t input_channels, float factor) {
  return {.outputs = BlockTiles::kOutputs,
          .input_channels = input_channels,
          .format = &format,
          .factor = factor};
}

void MultiplyTiled(const TileKernel& kernel, const PackedTiles& tiles, const std::byte* packed,
                   size_t output_channels, const QuantizedMatrix& rows, const OutputRows& output,
                   const ThreadPool& pool) {
  const RowGroup all = {.packed = packed, .first_row = 0, .num_rows = rows.num_rows};
  MultiplyTiledGroups(kernel, tiles, std::span(&all, 1), output_channels, rows, output, pool);
}

void MultiplyTiledGroups(const TileKernel& kernel, const PackedTiles& tiles,
                         std::span<const RowGroup> groups, size_t output_channels,
                         const QuantizedMatrix& rows, const OutputRows& output,
                         const ThreadPool& pool) {
  const size_t multiplications = rows.num_rows * output_channels * tiles.input_channels;
  const size_t num_tiles = DivideRoundingUp(output_channels, tiles.outputs);
  const bool is_shared = pool.num_threads() > 1 && multiplications >= kMinSharedMultiplications;
  const size_t fair_tiles =
      is_shared ? groups.size() * num_tiles / (pool.num_threads() * kTasksPerThread) : num_tiles;
  const size_t most_tiles = std::min({num_tiles, fair_tiles, kTaskBytes / tiles.tile_bytes()});
  // Whole calls of the kernel.
  const size_t task_calls = std::max<size_t>(1, DivideRoundingUp(most_tiles, kernel.many_tiles));
  const size_t task_tiles = task_calls * kernel.many_tiles;
  const size_t group_tasks = DivideRoundingUp(num_tiles, task_tiles);
  const auto run_task = [&](size_t task) {
    const RowGroup& group = groups[task / group_tasks];
    const size_t first_tile = task % group_tasks * task_tiles;
    const size_t first_output = first_tile * tiles.outputs;
    const size_t num_outputs = std::min(task_tiles * tiles.outputs, output_channels - first_output);
    MultiplyByTiles(kernel, num_outputs,
                    {.tiles = tiles,
                     .tile = group.packed + first_tile * tiles.tile_bytes(),
                     .rows = {.values = rows.values + group.first_row * rows.stride,
                              .stride = rows.stride,
                              .num_rows = group.num_rows},
                     .output = output.values + group.first_row * output.stride + first_output,
                     .output_stride = output.stride});
  };
  const size_t num_tasks = groups.size() * group_tasks;
  if (is_shared) {
    pool.ParallelFor(num_tasks, run_task);
  } else {
    for (size_t task = 0; task < num_tasks; ++task) run_task(task);
  }
}

}  // namespace cria::ops
