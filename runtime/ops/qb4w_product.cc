#include "ops/qb4w_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/qb4w_product.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

namespace hn = hwy::HWY_NAMESPACE;

// The instruction multiplies unsigned by signed bytes and adds neighbouring products, in 16 bits
// that saturate. So 128 is added to the activations to make them unsigned; the zero point cancels
// it. Two products are at most 2 * 255 * 8 = 4080, and the sum of four such pairs fits.
using U8 = hn::FixedTag<uint8_t, 32>;
using I8 = hn::FixedTag<int8_t, 32>;
using I16 = hn::FixedTag<int16_t, 16>;
using I32 = hn::FixedTag<int32_t, 8>;
using F32 = hn::FixedTag<float, 8>;
using U64 = hn::FixedTag<uint64_t, 4>;

// Half a tile fills a vector. Each output has two lanes, which are added at the end.
constexpr size_t kHalves = 2;
constexpr size_t kHalfOutputs = Qb4wTiles8c8::kOutputs / kHalves;
constexpr size_t kHalfBytes = 32;
constexpr size_t kGroupBytes = kHalves * kHalfBytes;
// Inputs that one step multiplies: two groups. Scales are applied after whole steps.
constexpr size_t kStepInputs = 32;
constexpr size_t kStepBytes = 2 * kGroupBytes;

// The sums of a row for the two halves of a tile, two lanes for each output.
using TileSums = float[kHalves][8];

// All rows and a part of the tiles; the first output of the part is output[0].
struct Part {
  const Qb4wTiles8c8& shape;
  const std::byte* tiles;
  const QuantizedMatrix& rows;
  float* output;
  size_t output_stride;
  size_t num_outputs;

  // Row r as int8 + 128.
  const uint8_t* Row(size_t r) const {
    return reinterpret_cast<const uint8_t*>(rows.values) + r * rows.stride;
  }
  // Offset of a block's scales in the block.
  size_t scales_offset() const { return shape.block_size / 2 * Qb4wTiles8c8::kOutputs; }
};

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

HWY_INLINE hn::Vec<F32> SumPairs(hn::Vec<I16> pairs) {
  return hn::ConvertTo(F32(), hn::WidenMulPairwiseAdd(I32(), pairs, hn::Set(I16(), int16_t{1})));
}

// The dot products of half a tile's 32 inputs with a row's, in two lanes for each output.
HWY_INLINE hn::Vec<F32> Dot(const hn::Vec<I8> (&weights)[4], const uint8_t* values) {
  hn::Vec<I16> sum = hn::Undefined(I16());
  HWY_UNROLL(4)
  for (size_t i = 0; i < 4; ++i) {
    const auto pairs = hn::SatWidenMulPairwiseAdd(I16(), Eight(values + i * 8), weights[i]);
    sum = i == 0 ? pairs : hn::Add(sum, pairs);
  }
  return SumPairs(sum);
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

// Writes a row's results for a tile whose first output is `output`.
void StoreRow(const Part& part, const std::byte* tile, size_t output, size_t r,
              const TileSums& sums) {
  const F32 d;
  const RowQuantization& quantization = part.rows.quantizations[r];
  const auto zero = hn::Set(d, static_cast<float>(quantization.zero_point + 128));
  const auto minus_weights = hn::LoadU(d, reinterpret_cast<const float*>(tile));
  const auto lower = hn::LoadU(d, sums[0]), upper = hn::LoadU(d, sums[1]);
  const auto pairs = hn::Add(hn::ConcatEven(d, upper, lower), hn::ConcatOdd(d, upper, lower));
  // The stored scales are sixteenths.
  const auto sum = hn::MulAdd(pairs, hn::Set(d, 16.0f), hn::Mul(zero, minus_weights));
  const auto result = hn::Mul(hn::Set(d, quantization.scale), sum);
  float* results = part.output + r * part.output_stride + output;
  const size_t left = part.num_outputs - output;
  if (left >= Qb4wTiles8c8::kOutputs) {
    hn::StoreU(result, d, results);
  } else {
    hn::StoreN(result, d, results, left);
  }
}

// For few rows: all of them, with weights that are unpacked when they are read from memory.
template <size_t kRows>
void MultiplyFewRows(const Part& part, const std::byte* tile, size_t output) {
  // Prefetches beyond the next page boundary, where the processor's own prefetching ends.
  constexpr size_t kPrefetchBytes = 2048;
  const uint8_t* values = part.Row(0);
  const std::byte* block = tile + Qb4wTiles8c8::kOutputs * sizeof(float);
  hn::Vec<F32> sums[kRows][kHalves];
  HWY_UNROLL(4)
  for (auto& row : sums) {
    HWY_UNROLL(2)
    for (auto& sum : row) sum = hn::Zero(F32());
  }
  for (size_t input = 0; input < part.shape.input_channels; block += part.shape.block_bytes()) {
    const hn::Vec<F32> scales[kHalves] = {Scales(block + part.scales_offset(), 0),
                                          Scales(block + part.scales_offset(), 1)};
    const std::byte* step = block;
    for (const size_t end = input + part.shape.block_size; input < end;
         input += kStepInputs, step += kStepBytes) {
      hwy::Prefetch(step + kPrefetchBytes);
      hwy::Prefetch(step + kPrefetchBytes + kGroupBytes);
      HWY_UNROLL(2)
      for (size_t half = 0; half < kHalves; ++half) {
        hn::Vec<I8> weights[4];
        Unpack(step + half * kHalfBytes, weights);
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) {
          const auto dot = Dot(weights, values + r * part.rows.stride + input);
          sums[r][half] = hn::MulAdd(dot, scales[half], sums[r][half]);
        }
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    TileSums row_sums;
    for (size_t half = 0; half < kHalves; ++half) hn::StoreU(sums[r][half], F32(), row_sums[half]);
    StoreRow(part, tile, output, r, row_sums);
  }
}

// For many rows, a tile's weights are unpacked once: as many at a time as fit into the first-level
// cache together with the rows.
constexpr size_t kUnpackedInputs = 1024;
constexpr size_t kGroupRows = 128;
// Rows that are multiplied together: their sums fill the registers.
constexpr size_t kTileRows = 3;

struct Unpacked {
  // For every step: groups of eight inputs, one after another, each for both halves.
  alignas(64) int8_t weights[kUnpackedInputs / kStepInputs][4][kHalves][32];
  alignas(64) TileSums sums[kGroupRows];
};

void UnpackBlocks(const Part& part, const std::byte* block, size_t num_blocks, Unpacked& unpacked) {
  auto* to = unpacked.weights;
  for (size_t i = 0; i < num_blocks; ++i, block += part.shape.block_bytes()) {
    const std::byte* step = block;
    for (size_t input = 0; input < part.shape.block_size; input += kStepInputs, ++to) {
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
HWY_INLINE void AddUnpacked(const Part& part, const std::byte* first_block, size_t num_blocks,
                            const uint8_t* values, const Unpacked& unpacked, TileSums* sums) {
  const size_t stride = part.rows.stride;
  hn::Vec<F32> row_sums[kRows][kHalves];
  HWY_UNROLL(3)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (size_t half = 0; half < kHalves; ++half) {
      row_sums[r][half] = hn::LoadU(F32(), sums[r][half]);
    }
  }
  const std::byte* block_scales = first_block + part.scales_offset();
  const auto* step = unpacked.weights;
  for (size_t i = 0; i < num_blocks; ++i, block_scales += part.shape.block_bytes()) {
    alignas(32) float scales[kHalves][8];
    hn::Store(Scales(block_scales, 0), F32(), scales[0]);
    hn::Store(Scales(block_scales, 1), F32(), scales[1]);
    for (const uint8_t* end = values + part.shape.block_size; values != end;
         values += kStepInputs, ++step) {
      hn::Vec<I16> dots[kRows][kHalves];
      HWY_UNROLL(4)
      for (size_t v = 0; v < 4; ++v) {
        const auto weights0 = hn::Load(I8(), (*step)[v][0]);
        const auto weights1 = hn::Load(I8(), (*step)[v][1]);
        HWY_UNROLL(3)
        for (size_t r = 0; r < kRows; ++r) {
          const auto eight = Eight(values + r * stride + v * 8);
          const auto pairs0 = hn::SatWidenMulPairwiseAdd(I16(), eight, weights0);
          const auto pairs1 = hn::SatWidenMulPairwiseAdd(I16(), eight, weights1);
          dots[r][0] = v == 0 ? pairs0 : hn::Add(dots[r][0], pairs0);
          dots[r][1] = v == 0 ? pairs1 : hn::Add(dots[r][1], pairs1);
          // There are enough registers only with this order of additions; without it, GCC chooses
          // another.
          asm("" : "+x"(dots[r][0].raw), "+x"(dots[r][1].raw));
        }
      }
      HWY_UNROLL(3)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(2)
        for (size_t half = 0; half < kHalves; ++half) {
          row_sums[r][half] =
              hn::MulAdd(SumPairs(dots[r][half]), hn::Load(F32(), scales[half]), row_sums[r][half]);
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

// For at most kGroupRows rows.
void MultiplyManyRows(const Part& part, size_t first_row, size_t num_rows, const std::byte* tile,
                      size_t output) {
  Unpacked unpacked;
  std::memset(unpacked.sums, 0, num_rows * sizeof(TileSums));
  const size_t max_blocks = kUnpackedInputs / part.shape.block_size;
  const std::byte* block = tile + Qb4wTiles8c8::kOutputs * sizeof(float);
  for (size_t input = 0; input < part.shape.input_channels;) {
    const size_t blocks_left = (part.shape.input_channels - input) / part.shape.block_size;
    const size_t num_blocks = std::min(max_blocks, blocks_left);
    UnpackBlocks(part, block, num_blocks, unpacked);
    const auto add = [&]<size_t kRows>(std::integral_constant<size_t, kRows>, size_t r) HWY_ATTR {
      AddUnpacked<kRows>(part, block, num_blocks, part.Row(first_row + r) + input, unpacked,
                         unpacked.sums + r);
    };
    size_t r = 0;
    for (; num_rows - r >= kTileRows; r += kTileRows) {
      add(std::integral_constant<size_t, kTileRows>(), r);
    }
    if (num_rows - r == 2) add(std::integral_constant<size_t, 2>(), r);
    if (num_rows - r == 1) add(std::integral_constant<size_t, 1>(), r);
    input += num_blocks * part.shape.block_size;
    block += num_blocks * part.shape.block_bytes();
  }
  for (size_t r = 0; r < num_rows; ++r) {
    StoreRow(part, tile, output, first_row + r, unpacked.sums[r]);
  }
}

void MultiplyTiles(const Qb4wTiles8c8& shape, const std::byte* tiles, const QuantizedMatrix& rows,
                   float* output, size_t output_stride, size_t num_outputs) {
  const Part part = {shape, tiles, rows, output, output_stride, num_outputs};
  const std::byte* tile = tiles;
  for (size_t output_channel = 0; output_channel < num_outputs;
       output_channel += Qb4wTiles8c8::kOutputs, tile += shape.tile_bytes()) {
    switch (rows.num_rows) {
      case 1:
        MultiplyFewRows<1>(part, tile, output_channel);
        break;
      case 2:
        MultiplyFewRows<2>(part, tile, output_channel);
        break;
      case 3:
        MultiplyFewRows<3>(part, tile, output_channel);
        break;
      case 4:
        MultiplyFewRows<4>(part, tile, output_channel);
        break;
      default:
        for (size_t row = 0; row < rows.num_rows; row += kGroupRows) {
          MultiplyManyRows(part, row, std::min(kGroupRows, rows.num_rows - row), tile,
                           output_channel);
        }
    }
  }
}

// Adds 128 to int8 values, or subtracts it again; `size` is a multiple of 32.
void FlipSigns(int8_t* row, size_t size) {
  for (size_t i = 0; i < size; i += kStepInputs) {
    const auto flipped = hn::Xor(hn::LoadU(I8(), row + i), hn::Set(I8(), int8_t{-128}));
    hn::StoreU(flipped, I8(), row + i);
  }
}

bool HasProduct() { return true; }

#else

void MultiplyTiles(const Qb4wTiles8c8& /*shape*/, const std::byte* /*tiles*/,
                   const QuantizedMatrix& /*rows*/, float* /*output*/, size_t /*output_stride*/,
                   size_t /*num_outputs*/) {}
void FlipSigns(int8_t* /*row*/, size_t /*size*/) {}
bool HasProduct() { return false; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(MultiplyTiles);
HWY_EXPORT(FlipSigns);
HWY_EXPORT(HasProduct);

namespace {

// About what fits into a core's second-level cache together with a few rows: many rows are
// multiplied by this much of the weights before the next part.
constexpr size_t kTaskBytes = size_t{128} * 1024;
// Handing tasks to other threads costs about half a microsecond: below this, one thread is faster.
constexpr size_t kMinSharedMultiplications = size_t{128} * 1024;
// With several tasks for each thread, all threads finish at about the same time.
constexpr size_t kTasksPerThread = 8;

}  // namespace

bool HasQb4wProduct() { return HWY_DYNAMIC_DISPATCH(HasProduct)(); }

void MultiplyQb4w(const Qb4wTiles8c8& tiles, const std::byte* packed, size_t output_channels,
                  const QuantizedMatrix& rows, float* output, const ThreadPool& pool) {
  const auto flip_signs = [&](size_t r) {
    HWY_DYNAMIC_DISPATCH(FlipSigns)(rows.values + r * rows.stride, tiles.input_channels);
  };
  for (size_t r = 0; r < rows.num_rows; ++r) flip_signs(r);
  const size_t multiplications = rows.num_rows * output_channels * tiles.input_channels;
  const size_t num_tiles = (output_channels + tiles.kOutputs - 1) / tiles.kOutputs;
  const bool is_shared = pool.num_threads() > 1 && multiplications >= kMinSharedMultiplications;
  const size_t fair_tiles =
      is_shared ? num_tiles / (pool.num_threads() * kTasksPerThread) : num_tiles;
  const size_t task_tiles =
      std::max<size_t>(1, std::min(fair_tiles, kTaskBytes / tiles.tile_bytes()));
  const size_t num_tasks = (num_tiles + task_tiles - 1) / task_tiles;
  const auto run_task = [&](size_t task) {
    const size_t first_tile = task * task_tiles;
    const size_t first_output = first_tile * tiles.kOutputs;
    const size_t num_outputs =
        std::min(task_tiles * tiles.kOutputs, output_channels - first_output);
    HWY_DYNAMIC_DISPATCH(MultiplyTiles)(tiles, packed + first_tile * tiles.tile_bytes(), rows,
                                        output + first_output, output_channels, num_outputs);
  };
  if (is_shared) {
    pool.ParallelFor(num_tasks, run_task);
  } else {
    for (size_t task = 0; task < num_tasks; ++task) run_task(task);
  }
  for (size_t r = 0; r < rows.num_rows; ++r) flip_signs(r);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
