// Products of int8 rows and int4 weights for x86-64 processors that have AVX-512 and its dot
// products of bytes (VNNI). XNNPACK's kernels compute 14 rows even if there are fewer, and take
// twice as long for each.

#include "ops/products/tile_kernel.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/qb4w_avx512_vnni.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/avx512_vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

// A block's sum is at most 256 * 255 * 128 < 2^23, so that a float has it exactly.
template <size_t kRows>
void MultiplyRowsByInt4(const TileProduct& product) {
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
  HWY_UNROLL(kVnniMaxRows)
  for (auto& sum : sums) sum = hn::Zero(F32());
  for (size_t left = tiles.input_channels; left > 0; left -= tiles.block_size) {
    hn::Vec<I32> dots[kRows];
    HWY_UNROLL(kVnniMaxRows)
    for (auto& dot : dots) dot = hn::Zero(I32());
    const std::byte* scales = block + tiles.scales_offset();
    // Weights become 16 times as large, and the stored scales are sixteenths.
    for (; block != scales; block += kVnniGroupBytes, values += 2 * kVnniGroupInputs) {
      const VnniGroup group = LoadGroup(block);
      AddDots(lower_nibbles(group.first), values, stride, dots);
      AddDots(upper_nibbles(group.first), values + 8, stride, dots);
      AddDots(lower_nibbles(group.second), values + 4, stride, dots);
      AddDots(upper_nibbles(group.second), values + 12, stride, dots);
    }
    hwy::Prefetch(scales + kVnniPrefetchBytes);
    const auto scale =
        hn::PromoteTo(F32(), hn::LoadU(hn::FixedTag<hwy::bfloat16_t, 16>(),
                                       reinterpret_cast<const hwy::bfloat16_t*>(scales)));
    block += kVnniOutputs * sizeof(uint16_t);
    HWY_UNROLL(kVnniMaxRows)
    for (size_t r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(hn::ConvertTo(F32(), dots[r]), scale, sums[r]);
    }
  }
  const auto minus_weights = hn::LoadU(F32(), reinterpret_cast<const float*>(product.tile));
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    const RowQuantization& quantization = product.rows.quantizations[r];
    const auto zero = hn::Set(F32(), static_cast<float>(quantization.zero_point + 128));
    const auto sum = hn::MulAdd(zero, minus_weights, sums[r]);
    hn::StoreN(hn::Mul(hn::Set(F32(), quantization.scale), sum), F32(),
               product.output + r * product.output_stride, product.num_outputs);
  }
}

struct Int4Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyRowsByInt4<kRows>(product);
  }
};

const TileKernel* Qb4wAvx512Vnni() { return &kVnniKernel<Int4Rows>; }

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
