// Products of many rows and a span with NEON: what takes the place of SpanProduct, which every
// other instruction set has.

#if defined(CRIA_OPS_BLOCK_SPANS_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_BLOCK_SPANS_NEON_INL_H_
#undef CRIA_OPS_BLOCK_SPANS_NEON_INL_H_
#else
#define CRIA_OPS_BLOCK_SPANS_NEON_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/products/block_spans-inl.h"
#if defined(__aarch64__)
#include "ops/products/neon_byte_span-inl.h"
#include "ops/products/neon_dot_span-inl.h"
#include "ops/products/neon_tile-inl.h"
#endif

namespace cria::ops::HWY_NAMESPACE {

// ManyRowsProduct is the product of many rows and a format's spans; `Otherwise` is its SpanProduct.
// Nothing here uses vectors itself, so this needs no instruction set.
#if HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64 && !CRIA_OPS_IS_ARM_DOT_TARGET
// SpanProduct for codes of up to four bits in groups of whole steps.
template <const BlockFormat& kFormat, bool kSubtracts>
struct ByteManyRows {
  static constexpr uint8_t kCenter = kFormat.code_bits == 4 ? 8 : 0;
  static void Add(const TileProduct& product, const Span& span, size_t input, size_t steps,
                  float (*sums)[kTileOutputs]) {
    ByteSpanProduct<ByteOrder::kByOutput, kFormat.group_inputs / kStepInputs, kSubtracts,
                    kCenter != 0>::Add(product,
                                       {.weights = reinterpret_cast<const int8_t*>(span.codes[0]),
                                        .scales = span.scales[0],
                                        .minimums = span.minimums[0]},
                                       input, steps, sums);
  }
};
template <const BlockFormat& kFormat, class Otherwise, bool kSubtracts>
using ManyRowsProduct =
    std::conditional_t<kFormat.code_bits <= 4 && kFormat.codebook == Codebook::kNone &&
                           kFormat.group_inputs >= kStepInputs,
                       ByteManyRows<kFormat, kSubtracts>, Otherwise>;
#elif CRIA_OPS_IS_ARM_DOT_TARGET
// SpanProduct for groups of whole steps.
template <const BlockFormat& kFormat, bool kSubtracts>
struct DotManyRows {
  static constexpr uint8_t kCenter = 0;
  static void Add(const TileProduct& product, const Span& span, size_t input, size_t steps,
                  float (*sums)[kTileOutputs]) {
    DotSpanProduct<kFormat.group_inputs / kStepInputs, kSubtracts>::Add(
        product,
        {.weights = reinterpret_cast<const int8_t*>(span.codes[0]),
         .scales = span.scales[0],
         .minimums = span.minimums[0]},
        input, steps, sums);
  }
};
template <const BlockFormat& kFormat, class Otherwise, bool kSubtracts>
using ManyRowsProduct = std::conditional_t<(kFormat.group_inputs >= kStepInputs),
                                           DotManyRows<kFormat, kSubtracts>, Otherwise>;
#else
template <const BlockFormat& kFormat, class Otherwise, bool kSubtracts>
using ManyRowsProduct = Otherwise;
#endif

}  // namespace cria::ops::HWY_NAMESPACE

#endif  // CRIA_OPS_BLOCK_SPANS_NEON_INL_H_
