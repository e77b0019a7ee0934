#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numeric.h"

namespace cria::ops {

// Values of a row that share a scale.
inline constexpr size_t kActivationBlock = 32;

// A row of `size` activations, quantized to int8 in blocks of kActivationBlock, each with a scale
// of its own: value = scale * int8. With n as the number of blocks, it is stored as
//   int8[32 * n]  between -127 and 127; 0 behind the last value
//   float[n]      scales
//   int32[n]      BlockOffset() of the sum of the block's int8
//   float[n]      sums of the block's values
//   float[2 * n]  sums of the values of each half of a block
struct QuantizedBlocks {
  static constexpr size_t Blocks(size_t size) { return DivideRoundingUp(size, kActivationBlock); }
  static constexpr size_t Bytes(size_t size) {
    return Blocks(size) * (kActivationBlock + 4 * sizeof(float) + sizeof(int32_t));
  }
  static const float* Scales(const int8_t* row, size_t size) {
    return reinterpret_cast<const float*>(row + Blocks(size) * kActivationBlock);
  }
  static const int32_t* Offsets(const int8_t* row, size_t size) {
    return reinterpret_cast<const int32_t*>(Scales(row, size) + Blocks(size));
  }
  static const float* Sums(const int8_t* row, size_t size) {
    return reinterpret_cast<const float*>(Offsets(row, size) + Blocks(size));
  }
  static const float* HalfSums(const int8_t* row, size_t size) {
    return Sums(row, size) + Blocks(size);
  }
};

// What kernels that make weights unsigned, by adding a number to each, add to the products of a
// block whose int8 have the sum `sum`: -128 * sum; for AVX2, -8 * sum.
int32_t BlockOffset(int32_t sum);

// Consecutive blocks of a row: from `begin` up to, but without, `end`.
struct BlockRange {
  size_t begin = 0;
  size_t end = 0;
};

// Quantizes `blocks` of a row of `size` floats, as if 0 followed up to `padded_size`, to
// QuantizedBlocks of padded_size: each block's largest magnitude becomes 127 steps, and each value
// is rounded to the nearest step (the scheme of GGML's Q8_0). If a value of a block is not finite,
// the block's scale is NaN, so that the results are NaN, too. `output`, where the whole row begins,
// must be aligned to 4 bytes. Threads may quantize different blocks of a row at once.
void QuantizeBlocks(const float* row, size_t size, size_t padded_size, BlockRange blocks,
                    int8_t* output);

}  // namespace cria::ops
