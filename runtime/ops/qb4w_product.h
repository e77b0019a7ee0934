#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_quantization.h"
#include "core/thread_pool.h"

namespace cria::ops {

// Products of int8 rows and int4 weights for x86-64 processors that have AVX2 but no int8 dot
// products. XNNPACK's kernel for these widens every number to 16 bits before it multiplies.

// Weights as XNNPACK packs kQb4w for AVX2 ("8c8"): consecutive tiles of 8 outputs, the last one
// padded to 8. A tile is:
//   float[8]          minus the sum of each output's weights, times their scales
//   for each block of inputs:
//     uint8[block_size / 16][8][8]  of output o, inputs 16 i + 0..7 in the low nibbles and
//                                   16 i + 8..15 in the high ones, in two's complement
//     bfloat16[8]                   a sixteenth of the block's scales
//   float[8]          biases, which are 0
struct Qb4wTiles8c8 {
  static constexpr size_t kOutputs = 8;

  size_t input_channels = 0;  // A multiple of block_size.
  size_t block_size = 0;      // A multiple of 32, at most 1024.

  size_t block_bytes() const { return block_size / 2 * kOutputs + kOutputs * sizeof(uint16_t); }
  size_t tile_bytes() const {
    return input_channels / block_size * block_bytes() + 2 * kOutputs * sizeof(float);
  }
};

// Row r of `num_rows`: int8[input_channels] at values + r * stride, quantized by quantizations[r].
struct QuantizedMatrix {
  int8_t* values = nullptr;
  size_t stride = 0;
  const RowQuantization* quantizations = nullptr;
  size_t num_rows = 0;
};

// Whether MultiplyQb4w runs on this processor and is faster than XNNPACK.
bool HasQb4wProduct();

// output[num_rows][output_channels] = rows × weightsᵀ, with rows of output output_channels apart.
// Each result is the same for any number of other rows and of threads. Changes the rows' values
// during the call and restores them.
void MultiplyQb4w(const Qb4wTiles8c8& tiles, const std::byte* packed, size_t output_channels,
                  const QuantizedMatrix& rows, float* output, const ThreadPool& pool);

}  // namespace cria::ops
