// Products of int8 rows and int4 weights for x86-64 processors that have AVX-512 and its dot
// products of bytes (VNNI). XNNPACK's kernels compute 14 rows even if there are fewer, and take
// twice as long for each.

#include <array>
#include <cstring>
#include <utility>

#include "ops/products/tile_kernel.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/qb4w_avx512_vnni.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

namespace hn = hwy::HWY_NAMESPACE;

// Each lane of a vector is one output of the tile. The instruction adds the products of four
// unsigned and four signed bytes to a lane, so 128 is added to the activations to make them
// unsigned; the zero point cancels it. The sum of a block of 256 inputs is at most
// 256 * 255 * 128 < 2^23, so that a float has it exactly.
using U8 = hn::FixedTag<uint8_t, 64>;
using I8 = hn::FixedTag<int8_t, 64>;
using I32 = hn::FixedTag<int32_t, 16>;
using U16 = hn::FixedTag<uint16_t, 32>;
using F32 = hn::FixedTag<float, 16>;

constexpr size_t kOutputs = 16;
constexpr size_t kGroupInputs = 8;
// Their sums, as integers and as floats, fill the registers.
constexpr size_t kMaxRows = 12;
// Inputs that one step multiplies: the two groups in the nibbles of the same bytes.
constexpr size_t kStepInputs = 2 * kGroupInputs;
constexpr size_t kStepBytes = kGroupInputs * kOutputs;
// The processor's own prefetching ends at page boundaries.
constexpr size_t kPrefetchBytes = 8192;
constexpr size_t kLineBytes = 64;

// Adds the products of four inputs of each row, from `values` on, to its sums.
template <size_t kRows>
HWY_INLINE void AddDots(hn::Vec<I8> weights, const uint8_t* values, size_t stride,
                        hn::Vec<I32> (&dots)[kRows]) {
  HWY_UNROLL(kMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    int32_t four;
    std::memcpy(&four, values + r * stride, sizeof four);
    const auto row = hn::BitCast(U8(), hn::Set(I32(), four));
    dots[r] = hn::SumOfMulQuadAccumulate(I32(), row, weights, dots[r]);
    asm("" : "+v"(dots[r].raw));
  }
}

template <size_t kRows>
void MultiplyRows(const TileProduct& product) {
  alignas(64) static constexpr int32_t kEven[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                                    16, 18, 20, 22, 24, 26, 28, 30};
  alignas(64) static constexpr int32_t kOdd[16] = {1,  3,  5,  7,  9,  11, 13, 15,
                                                   17, 19, 21, 23, 25, 27, 29, 31};
  const auto even = hn::IndicesFromVec(I32(), hn::Load(I32(), kEven));
  const auto odd = hn::IndicesFromVec(I32(), hn::Load(I32(), kOdd));
  const auto high = hn::Set(U8(), uint8_t{0xf0});
  const auto upper_nibbles = [&](hn::Vec<I32> pairs) HWY_ATTR {
    return hn::BitCast(I8(), hn::And(hn::BitCast(U8(), pairs), high));
  };
  const auto lower_nibbles = [&](hn::Vec<I32> pairs)
                                 HWY_ATTR { return upper_nibbles(hn::ShiftLeft<4>(pairs)); };

  const PackedTiles& tiles = product.tiles;
  const size_t stride = product.rows.stride;
  const uint8_t* values = product.UnsignedRow(0);
  const std::byte* block = product.tile + tiles.blocks_offset();
  hn::Vec<F32> sums[kRows];
  HWY_UNROLL(kMaxRows)
  for (auto& sum : sums) sum = hn::Zero(F32());
  for (size_t left = tiles.input_channels; left > 0; left -= tiles.block_size) {
    hn::Vec<I32> dots[kRows];
    HWY_UNROLL(kMaxRows)
    for (auto& dot : dots) dot = hn::Zero(I32());
    const std::byte* scales = block + tiles.scales_offset();
    for (; block != scales; block += kStepBytes, values += kStepInputs) {
      hwy::Prefetch(block + kPrefetchBytes);
      hwy::Prefetch(block + kPrefetchBytes + kLineBytes);
      // Outputs 0 to 7 and 8 to 15, each with inputs 0 to 3 and 4 to 7 in neighbouring lanes, and
      // inputs 8 to 15 in the upper nibbles. Weights become 16 times as large, and the stored
      // scales are sixteenths.
      const auto* bytes = reinterpret_cast<const int32_t*>(block);
      const auto first = hn::LoadU(I32(), bytes);
      const auto second = hn::LoadU(I32(), bytes + kOutputs);
      const auto outer = hn::TwoTablesLookupLanes(I32(), first, second, even);
      AddDots(lower_nibbles(outer), values, stride, dots);
      AddDots(upper_nibbles(outer), values + 8, stride, dots);
      const auto inner = hn::TwoTablesLookupLanes(I32(), first, second, odd);
      AddDots(lower_nibbles(inner), values + 4, stride, dots);
      AddDots(upper_nibbles(inner), values + 12, stride, dots);
    }
    hwy::Prefetch(block + kPrefetchBytes);
    const hn::FixedTag<hwy::bfloat16_t, 16> bf16;
    const auto scale =
        hn::PromoteTo(F32(), hn::LoadU(bf16, reinterpret_cast<const hwy::bfloat16_t*>(scales)));
    block += kOutputs * sizeof(uint16_t);
    HWY_UNROLL(kMaxRows)
    for (size_t r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(hn::ConvertTo(F32(), dots[r]), scale, sums[r]);
    }
  }
  const auto minus_weights = hn::LoadU(F32(), reinterpret_cast<const float*>(product.tile));
  HWY_UNROLL(kMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    const RowQuantization& quantization = product.rows.quantizations[r];
    const auto zero = hn::Set(F32(), static_cast<float>(quantization.zero_point + 128));
    const auto sum = hn::MulAdd(zero, minus_weights, sums[r]);
    hn::StoreN(hn::Mul(hn::Set(F32(), quantization.scale), sum), F32(),
               product.output + r * product.output_stride, product.num_outputs);
  }
}

void MultiplyByTile16c8(const TileProduct& product) {
  constexpr auto kKernels = []<size_t... kRows>(std::index_sequence<kRows...>) {
    return std::array{MultiplyRows<kRows + 1>...};
  }(std::make_index_sequence<kMaxRows>());
  kKernels[product.rows.num_rows - 1](product);
}

const TileKernel* Qb4wAvx512Vnni() {
  static constexpr TileKernel kKernel = {.tile_outputs = kOutputs,
                                         .group_inputs = kGroupInputs,
                                         .max_rows = kMaxRows,
                                         .reads_unsigned_rows = true,
                                         .multiply = MultiplyByTile16c8};
  return &kKernel;
}

#else

const TileKernel* Qb4wAvx512Vnni() { return nullptr; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Qb4wAvx512Vnni);

const TileKernel* Qb4wKernelForAvx512Vnni() { return HWY_DYNAMIC_DISPATCH(Qb4wAvx512Vnni)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
