#pragma once

#include <cstddef>
#include <span>

#include "core/thread_pool.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {

// The tiles that `kernel` reads, of weights with so many (padded) inputs in blocks, or of int8
// weights if block_size is 0.
PackedTiles TilesOf(const TileKernel& kernel, size_t input_channels, size_t block_size);
// The tiles of a block format, with results that are multiplied by `factor`.
PackedTiles TilesOf(const BlockFormat& format, size_t input_channels, float factor);

// Where results go: row r begins at values + r * stride.
struct OutputRows {
  float* values = nullptr;
  size_t stride = 0;
};

// output[num_rows][output_channels] = rows × weightsᵀ.
// `packed` are tiles as `kernel` reads them, and rows have the tiles' number of inputs. Each result
// is the same for any number of other rows and of threads.
void MultiplyTiled(const TileKernel& kernel, const PackedTiles& tiles, const std::byte* packed,
                   size_t output_channels, const QuantizedMatrix& rows, const OutputRows& output,
                   const ThreadPool& pool);

// Consecutive rows that are multiplied by a matrix of their own.
struct RowGroup {
  const std::byte* packed = nullptr;
  size_t first_row = 0;
  size_t num_rows = 0;
};

// Multiplies groups of the rows, whose matrices have one layout: threads share all of them at
// once, because the product of one group is often too small for all threads.
void MultiplyTiledGroups(const TileKernel& kernel, const PackedTiles& tiles,
                         std::span<const RowGroup> groups, size_t output_channels,
                         const QuantizedMatrix& rows, const OutputRows& output,
                         const ThreadPool& pool);

}  // namespace cria::ops
