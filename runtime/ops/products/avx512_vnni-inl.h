// What the kernels for AVX-512 VNNI share.

#if defined(CRIA_OPS_AVX512_VNNI_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_AVX512_VNNI_INL_H_
#undef CRIA_OPS_AVX512_VNNI_INL_H_
#else
#define CRIA_OPS_AVX512_VNNI_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/keep_order-inl.h"
#include "ops/products/multiply_rows.h"
#include "ops/products/tile_kernel.h"

#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Each lane of a vector is one output of the tile. The instruction adds the products of four
// unsigned and four signed bytes to a lane, so 128 is added to the weights to make them unsigned;
// the rows' offsets, with which sums begin, cancel it.
using U8 = hn::FixedTag<uint8_t, 64>;
using I8 = hn::FixedTag<int8_t, 64>;
using I32 = hn::FixedTag<int32_t, 16>;
using F32 = hn::FixedTag<float, 16>;

inline constexpr size_t kVnniOutputs = 16;
inline constexpr size_t kVnniGroupInputs = 8;
inline constexpr size_t kVnniGroupBytes = kVnniGroupInputs * kVnniOutputs;
// Two vectors of sums for each row nearly fill the registers.
inline constexpr size_t kVnniMaxRows = 12;

// A group's bytes. In memory, the four bytes of inputs 0 to 3 and those of 4 to 7 of an output are
// neighbours.
struct VnniGroup {
  hn::Vec<I32> first;   // Inputs 0 to 3 of every output.
  hn::Vec<I32> second;  // Inputs 4 to 7.
};

// What is prefetched is so far ahead. The processor's own prefetching ends at page boundaries; with
// more, 8 rows and what is prefetched no longer fit into 32 KiB of the first-level cache.
inline constexpr size_t kVnniPrefetchBytes = 6144;

HWY_INLINE VnniGroup LoadGroup(const std::byte* group) {
  alignas(64) static constexpr int32_t kEven[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                                    16, 18, 20, 22, 24, 26, 28, 30};
  alignas(64) static constexpr int32_t kOdd[16] = {1,  3,  5,  7,  9,  11, 13, 15,
                                                   17, 19, 21, 23, 25, 27, 29, 31};
  hwy::Prefetch(group + kVnniPrefetchBytes);
  hwy::Prefetch(group + kVnniPrefetchBytes + kVnniGroupBytes / 2);
  const auto* bytes = reinterpret_cast<const int32_t*>(group);
  const auto lower = hn::LoadU(I32(), bytes);
  const auto upper = hn::LoadU(I32(), bytes + 16);
  return {hn::TwoTablesLookupLanes(I32(), lower, upper,
                                   hn::IndicesFromVec(I32(), hn::Load(I32(), kEven))),
          hn::TwoTablesLookupLanes(I32(), lower, upper,
                                   hn::IndicesFromVec(I32(), hn::Load(I32(), kOdd)))};
}

// Returns value `block` of row r in all lanes; rows of values are `stride` bytes apart.
template <class D, typename T>
HWY_INLINE hn::Vec<D> OfRow(D d, const T* values, size_t r, size_t stride, size_t block) {
  return hn::Set(d, values[r * stride / sizeof(T) + block]);
}

// Adds the products of four inputs of each row, from `values` on, to its sums.
template <size_t kRows>
HWY_INLINE void AddDots(hn::Vec<U8> weights, const int8_t* values, size_t stride,
                        hn::Vec<I32> (&sums)[kRows]) {
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    int32_t four;
    std::memcpy(&four, values + r * stride, sizeof four);
    const auto row = hn::BitCast(I8(), hn::Set(I32(), four));
    sums[r] = hn::SumOfMulQuadAccumulate(I32(), weights, row, sums[r]);
    // GCC would move the sum to another register and back.
    KeepOrder(sums[r]);
  }
}

// Begins the sums of a block with the rows' offsets.
template <size_t kRows>
HWY_INLINE void BeginBlock(const int32_t* offsets, size_t stride, size_t block,
                           hn::Vec<I32> (&sums)[kRows]) {
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) sums[r] = OfRow(I32(), offsets, r, stride, block);
}

template <size_t kRows>
HWY_INLINE void ClearResults(hn::Vec<F32> (&results)[kRows]) {
  HWY_UNROLL(kVnniMaxRows)
  for (auto& result : results) result = hn::Zero(F32());
}

// Writes the results of all rows.
template <size_t kRows>
HWY_INLINE void StoreResults(const TileProduct& product, const hn::Vec<F32> (&results)[kRows]) {
  HWY_UNROLL(kVnniMaxRows)
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreN(results[r], F32(), product.output + r * product.output_stride, product.num_outputs);
  }
}

template <class Rows>
inline constexpr TileKernel kVnniKernel = {.tile_outputs = kVnniOutputs,
                                           .group_inputs = kVnniGroupInputs,
                                           .max_rows = kVnniMaxRows,
                                           .multiply = MultiplyRows<Rows, kVnniMaxRows>};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // CRIA_OPS_AVX512_VNNI_INL_H_
