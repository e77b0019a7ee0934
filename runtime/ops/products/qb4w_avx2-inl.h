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
#include "ops/keep_order-inl.h"
#include "ops/products/avx2_tile-inl.h"
#include "ops/products/multiply_rows.h"
#include "ops/products/tile_kernel.h"

#if HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Inputs that one step multiplies: a block of activations. Scales are applied after whole steps.
inline constexpr size_t kStepInputs = kActivationBlock;
inline constexpr size_t kStepBytes = 2 * kGroupBytes;

// Unpacks two vectors of half a tile's next 16 inputs: weights + 8, which are unsigned.
HWY_INLINE void UnpackHalf(const std::byte* half, hn::Vec<U8> (&weights)[2]) {
  const auto stored = hn::LoadU(U8(), reinterpret_cast<const uint8_t*>(half));
  const auto nibbles = hn::Xor(stored, hn::Set(U8(), uint8_t{0x88}));
  const auto low = hn::Set(U8(), uint8_t{15});
  const auto high = hn::BitCast(U8(), hn::ShiftRight<4>(hn::BitCast(I16(), nibbles)));
  weights[0] = hn::And(nibbles, low);
  weights[1] = hn::And(high, low);
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
// Unpacks four vectors of a tile's next 16 inputs: each has four inputs of every output, in the
// order of EvenLanes.
HWY_INLINE void UnpackTile(const std::byte* group, hn::Vec<U8> (&weights)[4]) {
  hn::Vec<U8> lower[2], upper[2];
  UnpackHalf(group, lower);
  UnpackHalf(group + kHalfBytes, upper);
  HWY_UNROLL(2)
  for (size_t i = 0; i < 2; ++i) {
    weights[2 * i] = hn::Vec<U8>{EvenLanes(lower[i].raw, upper[i].raw)};
    weights[2 * i + 1] = hn::Vec<U8>{OddLanes(lower[i].raw, upper[i].raw)};
  }
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
  using Sum = typename Products::Sum;

  // Adds the products of four inputs of every output to a row's dot products, or begins them.
  template <bool kIsFirst>
  static HWY_INLINE void AddFour(const int8_t* values, hn::Vec<U8> weights, Sum& dots) {
    const auto four = Four(values);
    dots = kIsFirst ? Products::First(four, weights) : Products::Add(four, weights, dots);
    KeepOrder(dots);
  }

  // The dot products of half a tile's block of inputs with a row's, in two lanes for each output.
  static HWY_INLINE hn::Vec<I32> HalfDots(const hn::Vec<U8> (&weights)[2][2],
                                          const int8_t* values) {
    auto sum = Products::First(Eight(values), weights[0][0]);
    sum = Products::Add(Eight(values + 8), weights[0][1], sum);
    sum = Products::Add(Eight(values + 16), weights[1][0], sum);
    sum = Products::Add(Eight(values + 24), weights[1][1], sum);
    return Products::Widen(sum);
  }

  // The dot products of a tile's block of inputs with those of each row, from `values` on, in the
  // order of EvenLanes. For one row or two, putting two sums into this order takes less time than
  // putting the weights into it.
  template <size_t kRows>
  static HWY_INLINE void BlockDots(const std::byte* step, const int8_t* values, size_t stride,
                                   hn::Vec<I32> (&dots)[kRows]) {
    if constexpr (kRows <= 2) {
      hn::Vec<I32> sums[kHalves][kRows];
      HWY_UNROLL(2)
      for (size_t half = 0; half < kHalves; ++half) {
        hn::Vec<U8> weights[2][2];
        UnpackHalf(step + half * kHalfBytes, weights[0]);
        UnpackHalf(step + half * kHalfBytes + kGroupBytes, weights[1]);
        HWY_UNROLL(2)
        for (size_t r = 0; r < kRows; ++r) sums[half][r] = HalfDots(weights, values + r * stride);
      }
      HWY_UNROLL(2)
      for (size_t r = 0; r < kRows; ++r) {
        dots[r] = hn::Add(hn::Vec<I32>{EvenLanes(sums[0][r].raw, sums[1][r].raw)},
                          hn::Vec<I32>{OddLanes(sums[0][r].raw, sums[1][r].raw)});
      }
    } else {
      Sum sums[kRows];
      HWY_UNROLL(2)
      for (size_t i = 0; i < 2; ++i, step += kGroupBytes) {
        hn::Vec<U8> weights[4];
        UnpackTile(step, weights);
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v, values += 4) {
          HWY_UNROLL(4)
          for (size_t r = 0; r < kRows; ++r) {
            if (i == 0 && v == 0) {
              AddFour<true>(values + r * stride, weights[v], sums[r]);
            } else {
              AddFour<false>(values + r * stride, weights[v], sums[r]);
            }
          }
        }
      }
      HWY_UNROLL(4)
      for (size_t r = 0; r < kRows; ++r) dots[r] = Products::Widen(sums[r]);
    }
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
  static constexpr size_t kMaxFewRows = 4;
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
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
        hn::Vec<I32> dots[kRows];
        BlockDots(step, values, stride, dots);
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) {
          AddBlock(dots[r], offsets[r * stride / sizeof(int32_t)], scales,
                   row_scales[r * stride / sizeof(float)], sums[r]);
        }
      }
    }
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) StoreRow(product, r, sums[r]);
  }

  // For many rows, the weights of two tiles are unpacked once, side by side, so that each load of a
  // row's inputs serves both: as many at a time as fit into the first-level cache together with the
  // rows.
  static constexpr size_t kUnpackedInputs = 1024;
  static constexpr size_t kUnpackedSteps = kUnpackedInputs / kStepInputs;
  static constexpr size_t kMinManyRows = 9;
  static constexpr size_t kManyTiles = 2;
  // Rows that are multiplied together: the sums of their products by both tiles fill the registers.
  static constexpr size_t kTileRows = 4;

  template <size_t kTiles>
  struct Unpacked {
    // For every step: vectors of four inputs for each output, in the order of EvenLanes.
    alignas(64) uint8_t weights[kUnpackedSteps][8][kTiles][32];
    alignas(64) float scales[kUnpackedSteps][kTiles][kOutputs];  // In the same order.
    alignas(64) float sums[kMaxManyRows][kTiles][kOutputs];
  };

  // Unpacks blocks of each tile, of which the first tile's begin at `first_block`.
  template <size_t kTiles>
  static void UnpackBlocks(const TileProduct& product, const std::byte* first_block,
                           size_t num_blocks, Unpacked<kTiles>& unpacked) {
    for (size_t t = 0; t < kTiles; ++t) {
      const std::byte* block = first_block + t * product.tiles.tile_bytes();
      size_t to = 0;
      for (size_t i = 0; i < num_blocks; ++i, block += product.tiles.block_bytes()) {
        const auto scales = Scales(block + product.tiles.scales_offset());
        const std::byte* step = block;
        for (size_t input = 0; input < product.tiles.block_size; input += kStepInputs, ++to) {
          hn::Store(scales, F32(), unpacked.scales[to][t]);
          HWY_UNROLL(2)
          for (size_t group = 0; group < 2; ++group, step += kGroupBytes) {
            hn::Vec<U8> weights[4];
            UnpackTile(step, weights);
            HWY_UNROLL(4)
            for (size_t v = 0; v < 4; ++v) {
              hn::Store(weights[v], U8(), unpacked.weights[to][4 * group + v][t]);
            }
          }
        }
      }
    }
  }

  // Adds the products of kRows rows, from row `first_row` and `input` on, with the unpacked inputs
  // to their sums. Meanwhile, the first rows prefetch what is unpacked next, from `next` on.
  template <size_t kRows, size_t kTiles>
  static HWY_INLINE void AddUnpacked(const TileProduct& product, size_t num_steps, size_t first_row,
                                     size_t input, const std::byte* next,
                                     Unpacked<kTiles>& unpacked) {
    const size_t stride = product.rows.stride;
    const int8_t* HWY_RESTRICT values = product.Row(first_row) + input;
    const float* HWY_RESTRICT row_scales = product.Scales(first_row) + input / kActivationBlock;
    const int32_t* HWY_RESTRICT offsets = product.Offsets(first_row) + input / kActivationBlock;
    auto* HWY_RESTRICT sums = unpacked.sums + first_row;
    // With its part of the block's scales.
    const size_t next_step_bytes = kStepBytes + kStepBytes * product.tiles.outputs *
                                                    sizeof(uint16_t) /
                                                    product.tiles.scales_offset();
    for (size_t i = 0; i < num_steps; ++i, values += kStepInputs) {
      if (first_row == 0) {
        HWY_UNROLL(2)
        for (size_t t = 0; t < kTiles; ++t) {
          const std::byte* const line = next + t * product.tiles.tile_bytes();
          hwy::Prefetch(line);
          hwy::Prefetch(line + kGroupBytes);
        }
        next += next_step_bytes;
      }
      Sum dots[kRows][kTiles];
      HWY_UNROLL(8)
      for (size_t v = 0; v < 8; ++v) {
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) {
          HWY_UNROLL(2)
          for (size_t t = 0; t < kTiles; ++t) {
            const auto weights = hn::Load(U8(), unpacked.weights[i][v][t]);
            const int8_t* four = values + r * stride + v * 4;
            if (v == 0) {
              AddFour<true>(four, weights, dots[r][t]);
            } else {
              AddFour<false>(four, weights, dots[r][t]);
            }
          }
        }
      }
      HWY_UNROLL(4)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(2)
        for (size_t t = 0; t < kTiles; ++t) {
          auto sum = hn::Load(F32(), sums[r][t]);
          AddBlock(Products::Widen(dots[r][t]), offsets[r * stride / sizeof(int32_t) + i],
                   hn::Load(F32(), unpacked.scales[i][t]),
                   row_scales[r * stride / sizeof(float) + i], sum);
          hn::Store(sum, F32(), sums[r][t]);
        }
      }
    }
  }

  template <size_t kTiles>
  static void MultiplyTiles(const TileProduct& product) {
    const size_t num_rows = product.rows.num_rows;
    Unpacked<kTiles> unpacked;
    std::memset(unpacked.sums, 0, num_rows * sizeof(unpacked.sums[0]));
    const size_t block_size = product.tiles.block_size;
    const size_t max_blocks = kUnpackedInputs / block_size;
    const std::byte* block = product.tile + product.tiles.blocks_offset();
    for (size_t input = 0; input < product.tiles.input_channels;) {
      const size_t blocks_left = (product.tiles.input_channels - input) / block_size;
      const size_t num_blocks = std::min(max_blocks, blocks_left);
      const size_t num_steps = num_blocks * block_size / kStepInputs;
      UnpackBlocks(product, block, num_blocks, unpacked);
      const std::byte* const next =
          num_blocks < blocks_left
              ? block + num_blocks * product.tiles.block_bytes()
              : product.tile + kTiles * product.tiles.tile_bytes() + product.tiles.blocks_offset();
      const auto add = [&]<size_t kRows>(std::integral_constant<size_t, kRows>, size_t r) HWY_ATTR {
        AddUnpacked<kRows>(product, num_steps, r, input, next, unpacked);
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
      input += num_blocks * block_size;
      block += num_blocks * product.tiles.block_bytes();
    }
    for (size_t t = 0; t < kTiles; ++t) {
      const TileProduct tile = product.Tile(t, kOutputs);
      for (size_t r = 0; r < num_rows; ++r) {
        StoreRow(tile, r, hn::Load(F32(), unpacked.sums[r][t]));
      }
    }
  }

  static void MultiplyManyRows(const TileProduct& product) {
    if (product.num_outputs > kOutputs) {
      MultiplyTiles<2>(product);
    } else {
      MultiplyTiles<1>(product);
    }
  }

  static constexpr TileKernel kKernel = {.tile_outputs = kOutputs,
                                         .group_inputs = kGroupInputs,
                                         .max_rows = kMaxFewRows,
                                         .multiply = MultiplyRows<Qb4wTile, kMaxFewRows>,
                                         .multiply_many = MultiplyManyRows,
                                         .min_many_rows = kMinManyRows,
                                         .many_tiles = kManyTiles};
};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // CRIA_OPS_QB4W_AVX2_INL_H_
