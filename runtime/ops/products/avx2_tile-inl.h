// What the kernels for AVX2 share.

#if defined(CRIA_OPS_AVX2_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_AVX2_TILE_INL_H_
#undef CRIA_OPS_AVX2_TILE_INL_H_
#else
#define CRIA_OPS_AVX2_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Eight inputs of a row, repeated for each of four outputs.
HWY_INLINE hn::Vec<I8> Eight(const int8_t* values) {
  uint64_t eight;
  std::memcpy(&eight, values, sizeof(eight));
  return hn::BitCast(I8(), hn::Set(U64(), eight));
}

// Four inputs of a row, repeated for each of eight outputs.
HWY_INLINE hn::Vec<I8> Four(const int8_t* values) {
  int32_t four;
  std::memcpy(&four, values, sizeof(four));
  return hn::BitCast(I8(), hn::Set(I32(), four));
}

// The sums of eight outputs from the two lanes that each has in `lower` and `upper`.
HWY_INLINE hn::Vec<F32> AddLanes(hn::Vec<F32> lower, hn::Vec<F32> upper) {
  const F32 d;
  return hn::Add(hn::ConcatEven(d, upper, lower), hn::ConcatOdd(d, upper, lower));
}

HWY_INLINE void StoreResults(const TileProduct& product, size_t r, hn::Vec<F32> results) {
  float* const output = product.output + r * product.output_stride;
  if (product.num_outputs == kOutputs) {
    hn::StoreU(results, F32(), output);
  } else {
    hn::StoreN(results, F32(), output, product.num_outputs);
  }
}

// Adds the dot products of four unsigned weights and four signed activations to a lane (AVX-VNNI).
// Written by hand, because Highway has no such target, and functions that are compiled for AVX-VNNI
// could be taken for others with the same name.
struct AvxVnni {
  static HWY_INLINE void Add(__m256i weights, __m256i row, __m256i& sum) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(row));
  }
};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // CRIA_OPS_AVX2_TILE_INL_H_
