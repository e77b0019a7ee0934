#pragma once

#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/platform.h"
#include "ops/products/multiply_rows.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {

// Outputs of a tile, and the vectors of their sums.
inline constexpr size_t kNeonOutputs = 16;
inline constexpr size_t kNeonVectors = kNeonOutputs / 4;

// Four bfloat16s, as floats.
inline float32x4_t WidenBf16(uint16x4_t values) {
  return vreinterpretq_f32_u32(vshll_n_u16(values, 16));
}

// Must be called before instructions read activations that are written here in assembly: the
// compiler does not know that they read memory.
inline void PublishActivations() { asm volatile("" : : : "memory"); }

// 16 activations of a row. In assembly, because compilers would load those of two steps at once and
// then not have enough registers.
[[gnu::always_inline]] inline int8x16_t LoadActivations(const int8_t* row, size_t input) {
  int8x16_t activations;
  asm volatile("ldr %q0, [%1, %2]" : "=w"(activations) : "r"(row), "r"(input));
  return activations;
}

// Adds to each of 4 outputs' sums the dot product of its 4 weights and activations 4 * kLane to
// 4 * kLane + 3. An instruction that not every processor has: intrinsics for it would need a file
// compiled for other processors, whose inline functions might then be used everywhere.
template <size_t kLane>
[[gnu::always_inline]] inline void AddDot(int8x16_t weights, int8x16_t activations,
                                          int32x4_t& sums) {
  asm volatile(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.4b[%3]"
               : "+w"(sums)
               : "w"(weights), "w"(activations), "i"(kLane));
}

// Sets sums to zero.
template <typename Vector, size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void Clear(Vector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 8
    for (auto& sum : row) sum = Vector{};
  }
}

// Writes results of row r for vectors of 4 outputs, from vector `first` of the tile on.
template <size_t kVectors>
[[gnu::always_inline]] inline void StoreVectors(const TileProduct& product, size_t r, size_t first,
                                                const float32x4_t (&results)[kVectors]) {
  float* output = product.output + r * product.output_stride + 4 * first;
  if (product.num_outputs == kNeonOutputs) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) vst1q_f32(output + 4 * v, results[v]);
    return;
  }
  if (product.num_outputs <= 4 * first) return;
  // A copy, so that the results of other tiles never have an address.
  float values[4 * kVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) vst1q_f32(values + 4 * v, results[v]);
  const size_t size = std::min(product.num_outputs - 4 * first, 4 * kVectors);
  std::memcpy(output, values, size * sizeof(float));
}

// Writes the results of int4 products: kFactor times the sums of all rows, for vectors of 4 outputs
// from vector `first` of the tile on.
template <int kFactor, size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void StoreResults(const TileProduct& product, size_t first,
                                                float32x4_t (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    if constexpr (kFactor != 1) {
#pragma GCC unroll 4
      for (auto& sum : sums[r]) sum = vmulq_n_f32(sum, kFactor);
    }
    StoreVectors(product, r, first, sums[r]);
  }
}

// Writes the results of int8 products: the sums of all rows times the outputs' scales.
template <size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void StoreScaled(const TileProduct& product, size_t first,
                                               const float* scales,
                                               float32x4_t (&sums)[kRows][kVectors]) {
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const float32x4_t scale = vld1q_f32(scales + 4 * (first + v));
#pragma GCC unroll 8
    for (auto& row : sums) row[v] = vmulq_f32(row[v], scale);
  }
  StoreResults<1>(product, first, sums);
}

// Multiplies rows by a whole tile at once if they are kMaxRowsOfWholeTile or fewer. If there are
// more, their sums would not fit the registers, so one half of the tile follows the other.
// Part::Multiply<kRows, kVectors>(product, first) multiplies all rows by `kVectors` vectors of 4
// outputs, from vector `first` of the tile on.
template <class Part, size_t kMaxRowsOfWholeTile>
struct WholeTileOrHalves {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    if constexpr (kRows <= kMaxRowsOfWholeTile) {
      Part::template Multiply<kRows, kNeonVectors>(product, 0);
    } else {
      constexpr size_t kHalf = kNeonVectors / 2;
      for (size_t first = 0; first < kNeonVectors; first += kHalf) {
        Part::template Multiply<kRows, kHalf>(product, first);
      }
    }
  }
};

// Adds the products of all rows and of `steps` blocks of activations, from `input` on, to the rows'
// sums, by Product::AddRows<n>(product, first_row, input, span, steps, sums of the first row). As
// many rows as can be are multiplied by the first of kRowCounts at a time, then by the next; the
// last one is 1. Fewer counts make a smaller program.
template <class Product, size_t... kRowCounts, class Span>
inline void AddAllRows(const TileProduct& product, const Span& span, size_t input, size_t steps,
                       float (*sums)[kNeonOutputs]) {
  size_t row = 0;
  const auto add = [&]<size_t kRows>() {
    for (; product.rows.num_rows - row >= kRows; row += kRows) {
      Product::template AddRows<kRows>(product, row, input, span, steps, sums + row);
    }
  };
  (add.template operator()<kRowCounts>(), ...);
}

// The kernel that multiplies n rows, up to kMaxRows, by Rows::Multiply<n>, and kMinManyRows or more
// by kMultiplyMany.
template <class Rows, size_t kGroupInputs, size_t kMaxRows,
          void (*kMultiplyMany)(const TileProduct&) = nullptr, size_t kMinManyRows = 0>
inline constexpr TileKernel kNeonKernel = {.tile_outputs = kNeonOutputs,
                                           .group_inputs = kGroupInputs,
                                           .max_rows = kMaxRows,
                                           .multiply =
                                               [](const TileProduct& product) {
                                                 PublishActivations();
                                                 MultiplyRows<Rows, kMaxRows>(product);
                                               },
                                           .multiply_many = kMultiplyMany,
                                           .min_many_rows = kMinManyRows};

// The kernel of Rows that use AddDot; null if this processor has no such instruction.
template <class Rows, size_t kGroupInputs, size_t kMaxRows,
          void (*kMultiplyMany)(const TileProduct&) = nullptr, size_t kMinManyRows = 0>
const TileKernel* NeonDotKernel() {
  static const bool is_possible = platform::HasArmDotProducts();
  return is_possible ? &kNeonKernel<Rows, kGroupInputs, kMaxRows, kMultiplyMany, kMinManyRows>
                     : nullptr;
}

}  // namespace cria::ops
