#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/products/packed_tiles.h"
#include "ops/quantized_blocks.h"
#include "weights/block_format.h"

namespace cria::ops {

// `num_rows` rows; row r is QuantizedBlocks at values + r * stride. Kernels may read 16 bytes
// behind a row, and ignore them.
struct QuantizedMatrix {
  const int8_t* values = nullptr;
  size_t stride = 0;
  size_t num_rows = 0;
};

// The product of some rows and one tile of weights, or consecutive ones where a kernel multiplies
// by several. Result o of row r is output[r * output_stride + o], for the first `num_outputs`
// outputs.
struct TileProduct {
  const PackedTiles& tiles;
  const std::byte* tile;
  QuantizedMatrix rows;
  float* output;
  size_t output_stride;
  size_t num_outputs = 0;

  const int8_t* Row(size_t r) const { return rows.values + r * rows.stride; }
  // The scales of row r have one element for each block, and so have the offsets.
  const float* Scales(size_t r) const {
    return QuantizedBlocks::Scales(Row(r), tiles.input_channels);
  }
  const int32_t* Offsets(size_t r) const {
    return QuantizedBlocks::Offsets(Row(r), tiles.input_channels);
  }
  // The product by tile `t` alone, if tiles have `tile_outputs` outputs.
  TileProduct Tile(size_t t, size_t tile_outputs) const {
    TileProduct product = *this;
    product.tile += t * tiles.tile_bytes();
    product.output += t * tile_outputs;
    product.num_outputs = std::min(num_outputs - t * tile_outputs, tile_outputs);
    return product;
  }
  // The sums of row r, one for each block; of halves, there are two.
  const float* Sums(size_t r) const { return QuantizedBlocks::Sums(Row(r), tiles.input_channels); }
  const float* HalfSums(size_t r) const {
    return QuantizedBlocks::HalfSums(Row(r), tiles.input_channels);
  }
};

// A kernel for one kind of processor, and the tiles that it reads. A row's results must not depend
// on the rows beside it.
struct TileKernel {
  size_t tile_outputs;
  size_t group_inputs;
  size_t max_rows;  // In one call; more rows are split into groups.
  void (*multiply)(const TileProduct& product);
  // Does the same, but unpacks the weights once for up to kMaxManyRows rows, and of up to
  // many_tiles tiles: faster for min_many_rows or more. Null if there is no such kernel.
  void (*multiply_many)(const TileProduct& product) = nullptr;
  size_t min_many_rows = 0;
  size_t many_tiles = 1;
};
inline constexpr size_t kMaxManyRows = 128;

// The kernel that multiplies rows by int4 (kQb4w) or int8 (kQc8w) weights on this processor; null
// if XNNPACK must do so.
const TileKernel* FindQb4wKernel();
const TileKernel* FindQc8wKernel();
// The kernel for a block format; there is one on every processor.
const TileKernel* FindBlockKernel(const BlockFormat& format);

// What these choose from, each null unless it is for this processor.
const TileKernel* Qb4wKernelForAvx2();
const TileKernel* Qb4wKernelForAvxVnni();
const TileKernel* Qb4wKernelForAvx512Vnni();
const TileKernel* Qb4wKernelForNeon();
const TileKernel* Qb4wKernelForNeonDot();
const TileKernel* Qb4wKernelForNeonI8mm();
const TileKernel* Qc8wKernelForAvx2();
const TileKernel* Qc8wKernelForAvxVnni();
const TileKernel* Qc8wKernelForAvx512Vnni();
const TileKernel* Qc8wKernelForNeonDot();
const TileKernel* Qc8wKernelForNeonI8mm();

}  // namespace cria::ops
