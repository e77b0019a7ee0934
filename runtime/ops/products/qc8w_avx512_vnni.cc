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

template <size_t kRows>
void MultiplyRowsByInt8(const TileProduct& product) {
  const PackedTiles& tiles = product.tiles;
  const size_t stride = product.rows.stride;
  const uint8_t* values = product.UnsignedRow(0);
  const std::byte* weights = product.tile + tiles.blocks_offset();
  const std::byte* const end = weights + tiles.int8_bytes();
  // Two, because adding to one would wait for the sum before.
  hn::Vec<I32> first[kRows], second[kRows];
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) first[r] = second[r] = hn::Zero(I32());
  for (const std::byte* at = weights; at != end; at += kVnniGroupBytes) {
    const VnniGroup group = LoadGroup(at);
    AddDots(hn::BitCast(I8(), group.first), values, stride, first);
    AddDots(hn::BitCast(I8(), group.second), values + 4, stride, second);
    values += kVnniGroupInputs;
  }
  const auto minus_weights = hn::LoadU(I32(), reinterpret_cast<const int32_t*>(product.tile));
  const auto scale = hn::LoadU(F32(), reinterpret_cast<const float*>(end));
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    const RowQuantization& quantization = product.rows.quantizations[r];
    const auto zero = hn::Set(I32(), quantization.zero_point + 128);
    const auto sum = hn::Add(hn::Add(first[r], second[r]), hn::Mul(zero, minus_weights));
    const auto scaled = hn::Mul(hn::ConvertTo(F32(), sum), hn::Set(F32(), quantization.scale));
    hn::StoreN(hn::Mul(scaled, scale), F32(), product.output + r * product.output_stride,
               product.num_outputs);
  }
}

struct Int8Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    MultiplyRowsByInt8<kRows>(product);
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
