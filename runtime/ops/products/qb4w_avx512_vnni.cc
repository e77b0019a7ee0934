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

// A block's sum is at most 32 * 240 * 127 < 2^23, so that a float has it exactly.
struct Int4Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    const auto high = hn::Set(U8(), uint8_t{0xf0});
    const auto upper_nibbles = [&](hn::Vec<I32> pairs)
                                   HWY_ATTR { return hn::And(hn::BitCast(U8(), pairs), high); };
    const auto lower_nibbles = [&](hn::Vec<I32> pairs)
                                   HWY_ATTR { return upper_nibbles(hn::ShiftLeft<4>(pairs)); };
    // Adds 8 to both signed weights of a byte.
    const auto made_unsigned = [signs = hn::Set(U8(), uint8_t{0x88})](hn::Vec<I32> pairs)
                                   HWY_ATTR { return hn::Xor(pairs, hn::BitCast(I32(), signs)); };

    const PackedTiles& tiles = product.tiles;
    const size_t stride = product.rows.stride;
    const int8_t* values = product.Row(0);
    const float* row_scales = product.Scales(0);
    const int32_t* offsets = product.Offsets(0);
    const std::byte* packed = product.tile + tiles.blocks_offset();
    hn::Vec<F32> results[kRows];
    ClearResults(results);
    const size_t num_blocks = tiles.input_channels / kActivationBlock;
    for (size_t block = 0; block < num_blocks;) {
      const std::byte* scales = packed + tiles.scales_offset();
      hwy::Prefetch(scales + kVnniPrefetchBytes);
      const auto scale =
          hn::PromoteTo(F32(), hn::LoadU(hn::FixedTag<hwy::bfloat16_t, 16>(),
                                         reinterpret_cast<const hwy::bfloat16_t*>(scales)));
      for (; packed != scales; ++block) {
        hn::Vec<I32> dots[kRows];
        BeginBlock(offsets, stride, block, dots);
        // Weights become 16 times as large, and the stored scales are sixteenths.
        for (size_t i = 0; i < kActivationBlock; i += 2 * kVnniGroupInputs) {
          const VnniGroup group = LoadGroup(packed);
          const auto first = made_unsigned(group.first);
          AddDots(lower_nibbles(first), values, stride, dots);
          AddDots(upper_nibbles(first), values + 8, stride, dots);
          const auto second = made_unsigned(group.second);
          AddDots(lower_nibbles(second), values + 4, stride, dots);
          AddDots(upper_nibbles(second), values + 12, stride, dots);
          packed += kVnniGroupBytes;
          values += 2 * kVnniGroupInputs;
        }
        HWY_UNROLL(kVnniMaxRows)
        for (size_t r = 0; r < kRows; ++r) {
          const auto row_scale = OfRow(F32(), row_scales, r, stride, block);
          results[r] =
              hn::MulAdd(hn::ConvertTo(F32(), dots[r]), hn::Mul(scale, row_scale), results[r]);
        }
      }
      packed += kVnniOutputs * sizeof(uint16_t);
    }
    StoreResults(product, results);
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
