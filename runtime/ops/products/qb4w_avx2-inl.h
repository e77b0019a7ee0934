// Products of int8 rows and int4 weights with vectors of 256 bits, which qb4w_avx2.cc completes.

#if defined(CRIA_OPS_QB4W_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_QB4W_AVX2_INL_H_
#undef CRIA_OPS_QB4W_AVX2_INL_H_
#else
#define CRIA_OPS_QB4W_AVX2_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/products/avx2_tile-inl.h"
#include "ops/products/tile_kernel.h"

#if HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Inputs that one step multiplies: a block of activations. Scales are applied after whole steps.
inline constexpr size_t kStepInputs = kActivationBlock;
inline constexpr size_t kStepBytes = 2 * kGroupBytes;

// Unpacks four vectors of half a tile's next 32 inputs: weights + 8, which are unsigned.
HWY_INLINE void Unpack(const std::byte* half, hn::Vec<U8> (&weights)[4]) {
  const auto signs = hn::Set(U8(), uint8_t{0x88});
  const auto low = hn::Set(U8(), uint8_t{15});
  HWY_UNROLL(2)
  for (size_t i = 0; i < 2; ++i) {
    const auto stored = hn::LoadU(U8(), reinterpret_cast<const uint8_t*>(half + i * kGroupBytes));
    const auto nibbles = hn::Xor(stored, signs);
    const auto high = hn::BitCast(U8(), hn::ShiftRight<4>(hn::BitCast(I16(), nibbles)));
    weights[2 * i] = hn::And(nibbles, low);
    weights[2 * i + 1] = hn::And(high, low);
  }
}

// The even 32-bit lanes of a tile's two halves, or the odd ones: one for each output, in the order
// 0, 1, 4, 5, 2, 3, 6, 7, which costs one instruction.
HWY_INLINE __m256i EvenLanes(__m256i lower, __m256i upper) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(lower), _mm256_castsi256_ps(upper), 0x88));
}
HWY_INLINE __m256i OddLanes(__m256i lower, __m256i upper) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(lower), _mm256_castsi256_ps(upper), 0xdd));
}
// Puts such lanes into the order of the outputs, or the reverse.
HWY_INLINE hn::Vec<F32> SwapMiddlePairs(hn::Vec<F32> lanes) {
  return hn::Vec<F32>{_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(lanes.raw), 0xd8))};
}

// The scales of a tile's outputs, in the order of EvenLanes.
HWY_INLINE hn::Vec<F32> Scales(const std::byte* scales) {
  // Places the bytes of bfloat16s in the upper halves of floats; 0x80 gives a zero.
  alignas(32) static constexpr uint8_t kPlaces[32] = {
      0x80, 0x80, 0, 1, 0x80, 0x80, 2, 3, 0x80, 0x80, 8,  9,  0x80, 0x80, 10, 11,
      0x80, 0x80, 4, 5, 0x80, 0x80, 6, 7, 0x80, 0x80, 12, 13, 0x80, 0x80, 14, 15};
  const auto bytes = hn::LoadDup128(U8(), reinterpret_cast<const uint8_t*>(scales));
  return hn::BitCast(F32(), hn::TableLookupBytesOr0(bytes, hn::Load(U8(), kPlaces)));
}

// How bytes of a row are multiplied by weights, made unsigned by adding 8, and added up over the 32
// inputs of a block, in 32 bits at the end. Without instructions for dot products, these are sums
// of neighbouring products in 16 bits, which saturate: two products are at most 2 * 15 * 127 =
// 3810, and the sum of the eight pairs that a lane gets at most fits.
struct PairProducts {
  using Sum = hn::Vec<I16>;
  static HWY_INLINE Sum First(hn::Vec<I8> row, hn::Vec<U8> weights) {
    return hn::SatWidenMulPairwiseAdd(I16(), weights, row);
  }
  static HWY_INLINE Sum Add(hn::Vec<I8> row, hn::Vec<U8> weights, Sum sum) {
    return hn::Add(sum, First(row, weights));
  }
  static HWY_INLINE hn::Vec<I32> Widen(Sum sum) {
    return hn::WidenMulPairwiseAdd(I32(), sum, hn::Set(I16(), int16_t{1}));
  }
};

// Sums by an instruction for dot products of four bytes, with the same results.
// Instruction::Add adds to an __m256i.
template <class Instruction>
struct DotProducts {
  using Sum = hn::Vec<I32>;
  static HWY_INLINE Sum First(hn::Vec<I8> row, hn::Vec<U8> weights) {
    return Add(row, weights, hn::Zero(I32()));
  }
  static HWY_INLINE Sum Add(hn::Vec<I8> row, hn::Vec<U8> weights, Sum sum) {
    Instruction::Add(weights.raw, row.raw, sum.raw);
    return sum;
  }
  static HWY_INLINE hn::Vec<I32> Widen(Sum sum) { return sum; }
};

// The products of rows and tiles of int4 weights; Products is one of the above.
template <class Products>
struct Qb4wTile {
  // The dot products of half a tile's 32 inputs with a row's, in two lanes for each output.
  static HWY_INLINE hn::Vec<I32> Dot(const hn::Vec<U8> (&weights)[4], const int8_t* values) {
    auto sum = Products::First(Eight(values), weights[0]);
    HWY_UNROLL(3)
    for (size_t i = 1; i < 4; ++i) sum = Products::Add(Eight(values + i * 8), weights[i], sum);
    return Products::Widen(sum);
  }

  // Adds the dot products of a block, for each output with weights + 8, to a row's sums. `offset`
  // is the row's BlockOffset().
  static HWY_INLINE void AddBlock(hn::Vec<I32> dots, int32_t offset, hn::Vec<F32> scales,
                                  float row_scale, hn::Vec<F32>& sums) {
    const auto exact = hn::Add(dots, hn::Set(I32(), offset));
    sums =
        hn::MulAdd(hn::ConvertTo(F32(), exact), hn::Mul(scales, hn::Set(F32(), row_scale)), sums);
  }

  // Writes a row's results.
  static HWY_INLINE void StoreRow(const TileProduct& product, size_t r, hn::Vec<F32> sums) {
    // The stored scales are sixteenths.
    StoreResults(product, r, hn::Mul(SwapMiddlePairs(sums), hn::Set(F32(), 16.0f)));
  }

  // For few rows: all of them, with weights that are unpacked when they are read from memory.
  template <size_t kRows>
  static void MultiplyFewRows(const TileProduct& product) {
    // Prefetches beyond the next page boundary, where the processor's own prefetching ends.
    constexpr size_t kPrefetchBytes = 2048;
    const size_t stride = product.rows.stride;
    const int8_t* values = product.Row(0);
    const float* row_scales = product.Scales(0);
    const int32_t* offsets = product.Offsets(0);
    const std::byte* block = product.tile + product.tiles.blocks_offset();
    hn::Vec<F32> sums[kRows];
    HWY_UNROLL(4)
    for (auto& sum : sums) sum = hn::Zero(F32());
    for (size_t input = 0; input < product.tiles.input_channels;
         block += product.tiles.block_bytes()) {
      const auto scales = Scales(block + product.tiles.scales_offset());
      const std::byte* step = block;
      for (const size_t end = input + product.tiles.block_size; input < end; input += kStepInputs,
                        step += kStepBytes, values += kStepInputs, ++row_scales, ++offsets) {
        hwy::Prefetch(step + kPrefetchBytes);
        hwy::Prefetch(step + kPrefetchBytes + kGroupBytes);
        hn::Vec<I32> lower[kRows];
        hn::Vec<U8> weights[4];
        Unpack(step, weights);
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) lower[r] = Dot(weights, values + r * stride);
        Unpack(step + kHalfBytes, weights);
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) {
          const auto upper = Dot(weights, values + r * stride);
          const auto dots = hn::Add(hn::Vec<I32>{EvenLanes(lower[r].raw, upper.raw)},
                                    hn::Vec<I32>{OddLanes(lower[r].raw, upper.raw)});
          AddBlock(dots, offsets[r * stride / sizeof(int32_t)], scales,
                   row_scales[r * stride / sizeof(float)], sums[r]);
        }
      }
    }
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) StoreRow(product, r, sums[r]);
  }

  // For many rows, a tile's weights are unpacked once: as many at a time as fit into the
  // first-level cache together with the rows.
  static constexpr size_t kUnpackedInputs = 1024;
  static constexpr size_t kMaxRows = 128;
  // Rows that are multiplied together: their sums fill the registers.
  static constexpr size_t kTileRows = 5;

  struct Unpacked {
    // For every step: vectors of four inputs for each output, in the order of EvenLanes.
    alignas(64) uint8_t weights[kUnpackedInputs / kStepInputs][8][32];
    alignas(64) float sums[kMaxRows][8];
  };

  static void UnpackBlocks(const TileProduct& product, const std::byte* block, size_t num_blocks,
                           Unpacked& unpacked) {
    auto* to = unpacked.weights;
    for (size_t i = 0; i < num_blocks; ++i, block += product.tiles.block_bytes()) {
      const std::byte* step = block;
      for (size_t input = 0; input < product.tiles.block_size; input += kStepInputs, ++to) {
        hn::Vec<U8> lower[4], upper[4];
        Unpack(step, lower);
        Unpack(step + kHalfBytes, upper);
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) {
          const hn::Vec<U8> even{EvenLanes(lower[v].raw, upper[v].raw)};
          const hn::Vec<U8> odd{OddLanes(lower[v].raw, upper[v].raw)};
          hn::Store(even, U8(), (*to)[2 * v]);
          hn::Store(odd, U8(), (*to)[2 * v + 1]);
        }
        step += kStepBytes;
      }
    }
  }

  // Adds the products of kRows rows, from row `first_row` and `input` on, with the unpacked inputs
  // to their sums.
  template <size_t kRows>
  static HWY_INLINE void AddUnpacked(const TileProduct& product, const std::byte* first_block,
                                     size_t num_blocks, size_t first_row, size_t input,
                                     const Unpacked& unpacked, float (*sums)[8]) {
    const size_t stride = product.rows.stride;
    const int8_t* values = product.Row(first_row) + input;
    const float* row_scales = product.Scales(first_row) + input / kActivationBlock;
    const int32_t* offsets = product.Offsets(first_row) + input / kActivationBlock;
    hn::Vec<F32> row_sums[kRows];
    HWY_UNROLL(5)
    for (size_t r = 0; r < kRows; ++r) row_sums[r] = hn::LoadU(F32(), sums[r]);
    const std::byte* block_scales = first_block + product.tiles.scales_offset();
    const auto* step = unpacked.weights;
    for (size_t i = 0; i < num_blocks; ++i, block_scales += product.tiles.block_bytes()) {
      alignas(32) float scales[8];
      hn::Store(Scales(block_scales), F32(), scales);
      for (const int8_t* end = values + product.tiles.block_size; values != end;
           values += kStepInputs, ++step, ++row_scales, ++offsets) {
        typename Products::Sum dots[kRows];
        HWY_UNROLL(8)
        for (size_t v = 0; v < 8; ++v) {
          const auto weights = hn::Load(U8(), (*step)[v]);
          HWY_UNROLL(5)
          for (size_t r = 0; r < kRows; ++r) {
            const auto four = Four(values + r * stride + v * 4);
            dots[r] =
                v == 0 ? Products::First(four, weights) : Products::Add(four, weights, dots[r]);
            // There are enough registers only with this order of additions; without it, GCC chooses
            // another.
            asm("" : "+x"(dots[r].raw));
          }
        }
        HWY_UNROLL(5)
        for (size_t r = 0; r < kRows; ++r) {
          AddBlock(Products::Widen(dots[r]), offsets[r * stride / sizeof(int32_t)],
                   hn::Load(F32(), scales), row_scales[r * stride / sizeof(float)], row_sums[r]);
        }
      }
    }
    HWY_UNROLL(5)
    for (size_t r = 0; r < kRows; ++r) hn::StoreU(row_sums[r], F32(), sums[r]);
  }

  static void MultiplyManyRows(const TileProduct& product) {
    const size_t num_rows = product.rows.num_rows;
    Unpacked unpacked;
    std::memset(unpacked.sums, 0, num_rows * sizeof(unpacked.sums[0]));
    const size_t max_blocks = kUnpackedInputs / product.tiles.block_size;
    const std::byte* block = product.tile + product.tiles.blocks_offset();
    for (size_t input = 0; input < product.tiles.input_channels;) {
      const size_t blocks_left = (product.tiles.input_channels - input) / product.tiles.block_size;
      const size_t num_blocks = std::min(max_blocks, blocks_left);
      UnpackBlocks(product, block, num_blocks, unpacked);
      const auto add = [&]<size_t kRows>(std::integral_constant<size_t, kRows>, size_t r) HWY_ATTR {
        AddUnpacked<kRows>(product, block, num_blocks, r, input, unpacked, unpacked.sums + r);
      };
      size_t r = 0;
      for (; num_rows - r >= kTileRows; r += kTileRows) {
        add(std::integral_constant<size_t, kTileRows>(), r);
      }
      const auto add_rest = [&]<size_t... kRests>(std::index_sequence<kRests...>) HWY_ATTR {
        ((num_rows - r == kRests + 1 ? add(std::integral_constant<size_t, kRests + 1>(), r)
                                     : void()),
         ...);
      };
      add_rest(std::make_index_sequence<kTileRows - 1>());
      input += num_blocks * product.tiles.block_size;
      block += num_blocks * product.tiles.block_bytes();
    }
    for (size_t r = 0; r < num_rows; ++r) {
      StoreRow(product, r, hn::LoadU(F32(), unpacked.sums[r]));
    }
  }

  static void Multiply(const TileProduct& product) {
    switch (product.rows.num_rows) {
      case 1:
        return MultiplyFewRows<1>(product);
      case 2:
        return MultiplyFewRows<2>(product);
      case 3:
        return MultiplyFewRows<3>(product);
      case 4:
        return MultiplyFewRows<4>(product);
      default:
        return MultiplyManyRows(product);
    }
  }

  static constexpr TileKernel kKernel = {.tile_outputs = kOutputs,
                                         .group_inputs = kGroupInputs,
                                         .max_rows = kMaxRows,
                                         .multiply = Multiply};
};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // CRIA_OPS_QB4W_AVX2_INL_H_
