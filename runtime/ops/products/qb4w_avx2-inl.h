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

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/products/tile_kernel.h"

#if HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U8 = hn::FixedTag<uint8_t, 32>;
using I8 = hn::FixedTag<int8_t, 32>;
using I16 = hn::FixedTag<int16_t, 16>;
using I32 = hn::FixedTag<int32_t, 8>;
using F32 = hn::FixedTag<float, 8>;
using U64 = hn::FixedTag<uint64_t, 4>;

// Half a tile fills a vector. Each output has two lanes, which are added at the end.
inline constexpr size_t kHalves = 2;
inline constexpr size_t kOutputs = 8;
inline constexpr size_t kGroupInputs = 8;
inline constexpr size_t kHalfBytes = 32;
inline constexpr size_t kGroupBytes = kHalves * kHalfBytes;
// Inputs that one step multiplies: two groups. Scales are applied after whole steps.
inline constexpr size_t kStepInputs = 32;
inline constexpr size_t kStepBytes = 2 * kGroupBytes;

// The sums of a row for the two halves of a tile, two lanes for each output.
using TileSums = float[kHalves][8];

// Unpacks the four signed vectors of half a tile's next 32 inputs.
HWY_INLINE void Unpack(const std::byte* half, hn::Vec<I8> (&weights)[4]) {
  alignas(16) static constexpr int8_t kSigned[16] = {0,  1,  2,  3,  4,  5,  6,  7,
                                                     -8, -7, -6, -5, -4, -3, -2, -1};
  const auto table = hn::LoadDup128(I8(), kSigned);
  const auto low = hn::Set(U8(), uint8_t{15});
  HWY_UNROLL(2)
  for (size_t i = 0; i < 2; ++i) {
    const auto nibbles = hn::LoadU(U8(), reinterpret_cast<const uint8_t*>(half + i * kGroupBytes));
    const auto high = hn::BitCast(U8(), hn::ShiftRight<4>(hn::BitCast(I16(), nibbles)));
    weights[2 * i] = hn::TableLookupBytes(table, hn::BitCast(I8(), hn::And(nibbles, low)));
    weights[2 * i + 1] = hn::TableLookupBytes(table, hn::BitCast(I8(), hn::And(high, low)));
  }
}

// Eight inputs of a row, repeated for each of four outputs.
HWY_INLINE hn::Vec<U8> Eight(const uint8_t* values) {
  uint64_t eight;
  std::memcpy(&eight, values, sizeof(eight));
  return hn::BitCast(U8(), hn::Set(U64(), eight));
}

// The four scales of a tile's first or second half, each in two lanes.
HWY_INLINE hn::Vec<F32> Scales(const std::byte* scales, size_t half) {
  // Places the bytes of bfloat16s in the upper halves of floats; 0x80 gives a zero.
  alignas(32) static constexpr uint8_t kPlaces[kHalves][32] = {
      {0x80, 0x80, 0, 1, 0x80, 0x80, 0, 1, 0x80, 0x80, 2, 3, 0x80, 0x80, 2, 3,
       0x80, 0x80, 4, 5, 0x80, 0x80, 4, 5, 0x80, 0x80, 6, 7, 0x80, 0x80, 6, 7},
      {0x80, 0x80, 8,  9,  0x80, 0x80, 8,  9,  0x80, 0x80, 10, 11, 0x80, 0x80, 10, 11,
       0x80, 0x80, 12, 13, 0x80, 0x80, 12, 13, 0x80, 0x80, 14, 15, 0x80, 0x80, 14, 15}};
  const auto bytes = hn::LoadDup128(U8(), reinterpret_cast<const uint8_t*>(scales));
  return hn::BitCast(F32(), hn::TableLookupBytesOr0(bytes, hn::Load(U8(), kPlaces[half])));
}

// How bytes of a row, made unsigned by adding 128, which the zero point cancels, are multiplied by
// weights and added up over the 32 inputs of a step: without instructions for dot products, as sums
// of neighbouring products in 16 bits, which saturate. Two products are at most 2 * 255 * 8 = 4080,
// and the sum of four such pairs fits.
struct PairProducts {
  using Sum = hn::Vec<I16>;
  static HWY_INLINE Sum First(hn::Vec<U8> row, hn::Vec<I8> weights) {
    return hn::SatWidenMulPairwiseAdd(I16(), row, weights);
  }
  static HWY_INLINE Sum Add(hn::Vec<U8> row, hn::Vec<I8> weights, Sum sum) {
    return hn::Add(sum, First(row, weights));
  }
  static HWY_INLINE hn::Vec<F32> ToFloat(Sum sum) {
    return hn::ConvertTo(F32(), hn::WidenMulPairwiseAdd(I32(), sum, hn::Set(I16(), int16_t{1})));
  }
};

// The same with an instruction for dot products of four bytes, which gives the same sums.
// Instruction::Add adds to an __m256i.
template <class Instruction>
struct DotProducts {
  using Sum = hn::Vec<I32>;
  static HWY_INLINE Sum First(hn::Vec<U8> row, hn::Vec<I8> weights) {
    return Add(row, weights, hn::Zero(I32()));
  }
  static HWY_INLINE Sum Add(hn::Vec<U8> row, hn::Vec<I8> weights, Sum sum) {
    Instruction::Add(row.raw, weights.raw, sum.raw);
    return sum;
  }
  static HWY_INLINE hn::Vec<F32> ToFloat(Sum sum) { return hn::ConvertTo(F32(), sum); }
};

// The products of rows and tiles of int4 weights; Products is one of the above.
template <class Products>
struct Qb4wTile {
  // The dot products of half a tile's 32 inputs with a row's, in two lanes for each output.
  static HWY_INLINE hn::Vec<F32> Dot(const hn::Vec<I8> (&weights)[4], const uint8_t* values) {
    auto sum = Products::First(Eight(values), weights[0]);
    HWY_UNROLL(3)
    for (size_t i = 1; i < 4; ++i) sum = Products::Add(Eight(values + i * 8), weights[i], sum);
    return Products::ToFloat(sum);
  }

  // Writes a row's results.
  static void StoreRow(const TileProduct& product, size_t r, const TileSums& sums) {
    const F32 d;
    const RowQuantization& quantization = product.rows.quantizations[r];
    const auto zero = hn::Set(d, static_cast<float>(quantization.zero_point + 128));
    const auto minus_weights = hn::LoadU(d, reinterpret_cast<const float*>(product.tile));
    const auto lower = hn::LoadU(d, sums[0]), upper = hn::LoadU(d, sums[1]);
    const auto pairs = hn::Add(hn::ConcatEven(d, upper, lower), hn::ConcatOdd(d, upper, lower));
    // The stored scales are sixteenths.
    const auto sum = hn::MulAdd(pairs, hn::Set(d, 16.0f), hn::Mul(zero, minus_weights));
    const auto result = hn::Mul(hn::Set(d, quantization.scale), sum);
    float* results = product.output + r * product.output_stride;
    if (product.num_outputs == kOutputs) {
      hn::StoreU(result, d, results);
    } else {
      hn::StoreN(result, d, results, product.num_outputs);
    }
  }

  // For few rows: all of them, with weights that are unpacked when they are read from memory.
  template <size_t kRows>
  static void MultiplyFewRows(const TileProduct& product) {
    // Prefetches beyond the next page boundary, where the processor's own prefetching ends.
    constexpr size_t kPrefetchBytes = 2048;
    const uint8_t* values = product.UnsignedRow(0);
    const std::byte* block = product.tile + product.tiles.blocks_offset();
    hn::Vec<F32> sums[kRows][kHalves];
    HWY_UNROLL(4)
    for (auto& row : sums) {
      HWY_UNROLL(2)
      for (auto& sum : row) sum = hn::Zero(F32());
    }
    for (size_t input = 0; input < product.tiles.input_channels;
         block += product.tiles.block_bytes()) {
      const hn::Vec<F32> scales[kHalves] = {Scales(block + product.tiles.scales_offset(), 0),
                                            Scales(block + product.tiles.scales_offset(), 1)};
      const std::byte* step = block;
      for (const size_t end = input + product.tiles.block_size; input < end;
           input += kStepInputs, step += kStepBytes) {
        hwy::Prefetch(step + kPrefetchBytes);
        hwy::Prefetch(step + kPrefetchBytes + kGroupBytes);
        HWY_UNROLL(2)
        for (size_t half = 0; half < kHalves; ++half) {
          hn::Vec<I8> weights[4];
          Unpack(step + half * kHalfBytes, weights);
          HWY_UNROLL(4)
          for (size_t r = 0; r < kRows; ++r) {
            const auto dot = Dot(weights, values + r * product.rows.stride + input);
            sums[r][half] = hn::MulAdd(dot, scales[half], sums[r][half]);
          }
        }
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      TileSums row_sums;
      for (size_t half = 0; half < kHalves; ++half)
        hn::StoreU(sums[r][half], F32(), row_sums[half]);
      StoreRow(product, r, row_sums);
    }
  }

  // For many rows, a tile's weights are unpacked once: as many at a time as fit into the
  // first-level cache together with the rows.
  static constexpr size_t kUnpackedInputs = 1024;
  static constexpr size_t kMaxRows = 128;
  // Rows that are multiplied together: their sums fill the registers.
  static constexpr size_t kTileRows = 3;

  struct Unpacked {
    // For every step: groups of eight inputs, one after another, each for both halves.
    alignas(64) int8_t weights[kUnpackedInputs / kStepInputs][4][kHalves][32];
    alignas(64) TileSums sums[kMaxRows];
  };

  static void UnpackBlocks(const TileProduct& product, const std::byte* block, size_t num_blocks,
                           Unpacked& unpacked) {
    auto* to = unpacked.weights;
    for (size_t i = 0; i < num_blocks; ++i, block += product.tiles.block_bytes()) {
      const std::byte* step = block;
      for (size_t input = 0; input < product.tiles.block_size; input += kStepInputs, ++to) {
        for (size_t half = 0; half < kHalves; ++half) {
          hn::Vec<I8> weights[4];
          Unpack(step + half * kHalfBytes, weights);
          HWY_UNROLL(4)
          for (size_t v = 0; v < 4; ++v) hn::Store(weights[v], I8(), (*to)[v][half]);
        }
        step += kStepBytes;
      }
    }
  }

  // Adds the products of kRows rows, from `values` on, with the unpacked inputs to their sums.
  template <size_t kRows>
  static HWY_INLINE void AddUnpacked(const TileProduct& product, const std::byte* first_block,
                                     size_t num_blocks, const uint8_t* values,
                                     const Unpacked& unpacked, TileSums* sums) {
    const size_t stride = product.rows.stride;
    hn::Vec<F32> row_sums[kRows][kHalves];
    HWY_UNROLL(3)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (size_t half = 0; half < kHalves; ++half) {
        row_sums[r][half] = hn::LoadU(F32(), sums[r][half]);
      }
    }
    const std::byte* block_scales = first_block + product.tiles.scales_offset();
    const auto* step = unpacked.weights;
    for (size_t i = 0; i < num_blocks; ++i, block_scales += product.tiles.block_bytes()) {
      alignas(32) float scales[kHalves][8];
      hn::Store(Scales(block_scales, 0), F32(), scales[0]);
      hn::Store(Scales(block_scales, 1), F32(), scales[1]);
      for (const uint8_t* end = values + product.tiles.block_size; values != end;
           values += kStepInputs, ++step) {
        typename Products::Sum dots[kRows][kHalves];
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) {
          const auto weights0 = hn::Load(I8(), (*step)[v][0]);
          const auto weights1 = hn::Load(I8(), (*step)[v][1]);
          HWY_UNROLL(3)
          for (size_t r = 0; r < kRows; ++r) {
            const auto eight = Eight(values + r * stride + v * 8);
            dots[r][0] = v == 0 ? Products::First(eight, weights0)
                                : Products::Add(eight, weights0, dots[r][0]);
            dots[r][1] = v == 0 ? Products::First(eight, weights1)
                                : Products::Add(eight, weights1, dots[r][1]);
            // There are enough registers only with this order of additions; without it, GCC chooses
            // another.
            asm("" : "+x"(dots[r][0].raw), "+x"(dots[r][1].raw));
          }
        }
        HWY_UNROLL(3)
        for (size_t r = 0; r < kRows; ++r) {
          HWY_UNROLL(2)
          for (size_t half = 0; half < kHalves; ++half) {
            row_sums[r][half] = hn::MulAdd(Products::ToFloat(dots[r][half]),
                                           hn::Load(F32(), scales[half]), row_sums[r][half]);
          }
        }
      }
    }
    HWY_UNROLL(3)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (size_t half = 0; half < kHalves; ++half) {
        hn::StoreU(row_sums[r][half], F32(), sums[r][half]);
      }
    }
  }

  static void MultiplyManyRows(const TileProduct& product) {
    const size_t num_rows = product.rows.num_rows;
    Unpacked unpacked;
    std::memset(unpacked.sums, 0, num_rows * sizeof(TileSums));
    const size_t max_blocks = kUnpackedInputs / product.tiles.block_size;
    const std::byte* block = product.tile + product.tiles.blocks_offset();
    for (size_t input = 0; input < product.tiles.input_channels;) {
      const size_t blocks_left = (product.tiles.input_channels - input) / product.tiles.block_size;
      const size_t num_blocks = std::min(max_blocks, blocks_left);
      UnpackBlocks(product, block, num_blocks, unpacked);
      const auto add = [&]<size_t kRows>(std::integral_constant<size_t, kRows>, size_t r) HWY_ATTR {
        AddUnpacked<kRows>(product, block, num_blocks, product.UnsignedRow(r) + input, unpacked,
                           unpacked.sums + r);
      };
      size_t r = 0;
      for (; num_rows - r >= kTileRows; r += kTileRows) {
        add(std::integral_constant<size_t, kTileRows>(), r);
      }
      if (num_rows - r == 2) add(std::integral_constant<size_t, 2>(), r);
      if (num_rows - r == 1) add(std::integral_constant<size_t, 1>(), r);
      input += num_blocks * product.tiles.block_size;
      block += num_blocks * product.tiles.block_bytes();
    }
    for (size_t r = 0; r < num_rows; ++r) {
      StoreRow(product, r, unpacked.sums[r]);
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
                                         .reads_unsigned_rows = true,
                                         .multiply = Multiply};
};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // CRIA_OPS_QB4W_AVX2_INL_H_
