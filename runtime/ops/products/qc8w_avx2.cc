// Products of int8 rows and int8 weights for x86-64 processors that have AVX2 but not AVX-512: with
// dot products of bytes (AVX-VNNI) or without. XNNPACK's kernels know no scales of blocks of
// activations.

#include "ops/products/tile_kernel.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/products/qc8w_avx2.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/products/avx2_tile-inl.h"
#include "ops/products/multiply_rows.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

// The sums of so many rows fill the registers.
constexpr size_t kMaxInt8Rows = 3;

// How bytes of a row are multiplied by weights and added up, two lanes for each output. Without
// instructions for dot products: the signs of the weights move to the row, whose numbers, unlike
// the weights, are never -128. The sum of two products is at most 2 * 128 * 127 < 2^15.
struct SignedPairs {
  struct Weights {
    hn::Vec<I8> weights;
    hn::Vec<U8> magnitudes;
  };
  static HWY_INLINE Weights Prepare(hn::Vec<I8> weights) {
    return {weights, hn::BitCast(U8(), hn::Abs(weights))};
  }
  static HWY_INLINE hn::Vec<I32> Begin(int32_t) { return hn::Zero(I32()); }
  static HWY_INLINE hn::Vec<I32> Add(hn::Vec<I8> row, const Weights& weights, hn::Vec<I32> sum) {
    const hn::Vec<I8> turned{_mm256_sign_epi8(row.raw, weights.weights.raw)};
    const auto pairs = hn::SatWidenMulPairwiseAdd(I16(), weights.magnitudes, turned);
    return hn::Add(sum, hn::WidenMulPairwiseAdd(I32(), pairs, hn::Set(I16(), int16_t{1})));
  }
};

// With them: 128 is added to the weights to make them unsigned, and sums begin with the row's
// offset, which cancels it: -64 times the sum of the activations in each of an output's two lanes.
struct UnsignedDots {
  using Weights = hn::Vec<U8>;
  static HWY_INLINE Weights Prepare(hn::Vec<I8> weights) {
    return hn::Xor(hn::BitCast(U8(), weights), hn::Set(U8(), uint8_t{0x80}));
  }
  static HWY_INLINE hn::Vec<I32> Begin(int32_t offset) {
    return hn::ShiftLeft<3>(hn::Set(I32(), offset));
  }
  static HWY_INLINE hn::Vec<I32> Add(hn::Vec<I8> row, Weights weights, hn::Vec<I32> sum) {
    AvxVnni::Add(weights.raw, row.raw, sum.raw);
    return sum;
  }
};

template <class Products>
struct Int8Rows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    // Prefetches beyond the next page boundary, where the processor's own prefetching ends.
    constexpr size_t kPrefetchBytes = 2048;
    const size_t stride = product.rows.stride;
    const int8_t* values = product.Row(0);
    const float* row_scales = product.Scales(0);
    const int32_t* offsets = product.Offsets(0);
    const std::byte* packed = product.tile + product.tiles.blocks_offset();
    const std::byte* const end = packed + product.tiles.int8_bytes();
    hn::Vec<F32> results[kRows][kHalves];
    HWY_UNROLL(kMaxInt8Rows)
    for (auto& result : results) result[0] = result[1] = hn::Zero(F32());
    for (; packed != end; ++row_scales, ++offsets) {
      hn::Vec<I32> dots[kRows][kHalves];
      HWY_UNROLL(kMaxInt8Rows)
      for (size_t r = 0; r < kRows; ++r) {
        dots[r][0] = dots[r][1] = Products::Begin(offsets[r * stride / sizeof(int32_t)]);
      }
      // The last block may have fewer groups.
      for (size_t i = 0; i < kActivationBlock && packed != end; i += kGroupInputs) {
        hwy::Prefetch(packed + kPrefetchBytes);
        const auto* weights = reinterpret_cast<const int8_t*>(packed);
        const auto lower = Products::Prepare(hn::LoadU(I8(), weights));
        const auto upper = Products::Prepare(hn::LoadU(I8(), weights + kHalfBytes));
        HWY_UNROLL(kMaxInt8Rows)
        for (size_t r = 0; r < kRows; ++r) {
          const auto eight = Eight(values + r * stride);
          dots[r][0] = Products::Add(eight, lower, dots[r][0]);
          dots[r][1] = Products::Add(eight, upper, dots[r][1]);
        }
        packed += kGroupBytes;
        values += kGroupInputs;
      }
      HWY_UNROLL(kMaxInt8Rows)
      for (size_t r = 0; r < kRows; ++r) {
        const auto scale = hn::Set(F32(), row_scales[r * stride / sizeof(float)]);
        HWY_UNROLL(2)
        for (size_t half = 0; half < kHalves; ++half) {
          results[r][half] =
              hn::MulAdd(hn::ConvertTo(F32(), dots[r][half]), scale, results[r][half]);
        }
      }
    }
    const auto scales = hn::LoadU(F32(), reinterpret_cast<const float*>(end));
    HWY_UNROLL(kMaxInt8Rows)
    for (size_t r = 0; r < kRows; ++r) {
      StoreResults(product, r, hn::Mul(AddLanes(results[r][0], results[r][1]), scales));
    }
  }

  static constexpr TileKernel kKernel = {.tile_outputs = kOutputs,
                                         .group_inputs = kGroupInputs,
                                         .max_rows = kMaxInt8Rows,
                                         .multiply = MultiplyRows<Int8Rows, kMaxInt8Rows>};
};

const TileKernel* Qc8wAvx2() { return &Int8Rows<SignedPairs>::kKernel; }
const TileKernel* Qc8wAvxVnni() {
  return __builtin_cpu_supports("avxvnni") ? &Int8Rows<UnsignedDots>::kKernel : nullptr;
}

#else

const TileKernel* Qc8wAvx2() { return nullptr; }
const TileKernel* Qc8wAvxVnni() { return nullptr; }

#endif

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Qc8wAvx2);
HWY_EXPORT(Qc8wAvxVnni);

const TileKernel* Qc8wKernelForAvx2() { return HWY_DYNAMIC_DISPATCH(Qc8wAvx2)(); }
const TileKernel* Qc8wKernelForAvxVnni() { return HWY_DYNAMIC_DISPATCH(Qc8wAvxVnni)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
