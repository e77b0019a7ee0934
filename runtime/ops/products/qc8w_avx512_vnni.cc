// Products of int8 rows and int8 weights for x86-64 processors that have AVX-512 and its dot
// products of bytes (VNNI). XNNPACK's kernels compute 14 rows even if there are fewer.

#include "ops/products/tile_kernel.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/qc8w_avx512_vnni.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/avx512_vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

struct Int8Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    // Adds 128 to signed weights.
    const auto made_unsigned = [signs = hn::Set(U8(), uint8_t{0x80})](hn::Vec<I32> weights)
                                   HWY_ATTR { return hn::Xor(hn::BitCast(U8(), weights), signs); };
    const PackedTiles& tiles = product.tiles;
    const size_t stride = product.rows.stride;
    const int8_t* values = product.Row(0);
    const float* row_scales = product.Scales(0);
    const int32_t* offsets = product.Offsets(0);
    const std::byte* packed = product.tile + tiles.blocks_offset();
    const std::byte* const end = packed + tiles.int8_bytes();
    hn::Vec<F32> results[kRows];
    ClearResults(results);
    for (size_t block = 0; packed != end; ++block) {
      hn::Vec<I32> dots[kRows];
      BeginBlock(offsets, stride, block, dots);
      // The last block may have fewer groups.
      for (size_t i = 0; i < kActivationBlock && packed != end; i += kVnniGroupInputs) {
        const VnniGroup group = LoadGroup(packed);
        AddDots(made_unsigned(group.first), values, stride, dots);
        AddDots(made_unsigned(group.second), values + 4, stride, dots);
        packed += kVnniGroupBytes;
        values += kVnniGroupInputs;
      }
      HWY_UNROLL(kVnniMaxRows)
      for (size_t r = 0; r < kRows; ++r) {
        const auto row_scale = OfRow(F32(), row_scales, r, stride, block);
        results[r] = hn::MulAdd(hn::ConvertTo(F32(), dots[r]), row_scale, results[r]);
      }
    }
    const auto scale = hn::LoadU(F32(), reinterpret_cast<const float*>(end));
    HWY_UNROLL(kVnniMaxRows)
    for (auto& result : results) result = hn::Mul(result, scale);
    StoreResults(product, results);
  }
};

const TileKernel* Qc8wAvx512Vnni() { return &kVnniKernel<Int8Rows>; }

#else

const TileKernel* Qc8wAvx512Vnni() { return nullptr; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Qc8wAvx512Vnni);

const TileKernel* Qc8wKernelForAvx512Vnni() { return HWY_DYNAMIC_DISPATCH(Qc8wAvx512Vnni)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
