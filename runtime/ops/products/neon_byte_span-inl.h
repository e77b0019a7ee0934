#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_bytes-inl.h"
#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {

// How the int8 weights of a tile for four inputs stand behind each other.
enum class ByteOrder : uint8_t {
  kByOutput,  // [outputs][4]
  kByInput,   // [4][outputs]
};

// The weights of a tile for several blocks of activations (steps), unpacked once for all rows.
struct ByteSpan {
  const int8_t* weights;  // [steps][kActivationBlock / 4], each of four inputs
  const float* scales;    // [steps][outputs]
  // [steps][outputs]: what the first step of a group has is subtracted for each activation of the
  // group.
  const float* minimums = nullptr;
};

// Products of many rows and a ByteSpan, for processors without dot products, in groups of
// kGroupSteps steps. If kIsCentered, weights are 8 less than what is multiplied; they are at most 8
// in magnitude, so that the sums of a step fit into 16 bits.
template <ByteOrder kOrder, size_t kGroupSteps, bool kSubtracts, bool kIsCentered>
class ByteSpanProduct {
 public:
  // Adds the products of `steps` steps, from `input` on, to the rows' sums.
  static void Add(const TileProduct& product, const ByteSpan& span, size_t input, size_t steps,
                  float (*sums)[kNeonOutputs]) {
    // Two rows, by turns, are as fast for each of them.
    AddAllRows<ByteSpanProduct, 8, 2, 1>(product, span, input, steps, sums);
  }

  // What AddAllRows calls.
  template <size_t kRows>
  [[gnu::noinline]] static void AddRows(const TileProduct& product, size_t first_row, size_t input,
                                        const ByteSpan& span, size_t steps,
                                        float (*sums)[kNeonOutputs]) {
    const int8_t* rows[kRows];
    const int8_t* values[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      rows[r] = product.Row(first_row + r);
      values[r] = rows[r] + input;
    }
    const auto distance = [&](const void* numbers) {
      return static_cast<size_t>(static_cast<const int8_t*>(numbers) - rows[0]) +
             input / kActivationBlock * sizeof(float);
    };
    Distances distances = {.scales = distance(product.Scales(first_row)),
                           .offsets = distance(product.Offsets(first_row)),
                           .sums = distance(product.Sums(first_row))};
    ByteSpan left = span;
    for (size_t step = 0; step < steps; step += kGroupSteps) {
#pragma GCC unroll 2
      for (size_t i = 0; i < kGroupSteps; ++i) {
        Sums16 step_sums[kRows];
        MultiplyStep(left.weights, values, step_sums);
        AddScaled(left, i + 1 == kGroupSteps, rows, distances, step_sums, sums);
        distances.scales += sizeof(float);
        distances.offsets += sizeof(float);
        distances.sums += sizeof(float);
      }
      left.scales += kGroupSteps * kNeonOutputs;
      if (kSubtracts) left.minimums += kGroupSteps * kNeonOutputs;
    }
  }

 private:
  static constexpr size_t kFourBytes = kInputsAtOnce * kNeonOutputs;
  static constexpr size_t kStepBytes = kActivationBlock * kNeonOutputs;

  // How many bytes behind its beginning a row has its numbers of a block.
  struct Distances {
    size_t scales;
    size_t offsets;
    size_t sums;
  };
  template <typename Number>
  [[gnu::always_inline]] static Number NumberOf(const int8_t* row, size_t distance) {
    return *reinterpret_cast<const Number*>(row + distance);
  }
  // The sum of a row's activations in a group, of whose last block the numbers are.
  [[gnu::always_inline]] static float SumOf(const int8_t* row, size_t distance) {
    float sum = NumberOf<float>(row, distance - (kGroupSteps - 1) * sizeof(float));
    for (size_t i = kGroupSteps - 1; i-- > 0;) {
      sum += NumberOf<float>(row, distance - i * sizeof(float));
    }
    return sum;
  }

  // Writes the sums of rows and the weights of a step; moves `weights` and `values` behind it.
  template <size_t kRows>
  [[gnu::always_inline]] static void MultiplyStep(const int8_t*& weights,
                                                  const int8_t* (&values)[kRows],
                                                  Sums16 (&sums)[kRows]) {
    const auto load = [&](int8x16_t(&four)[kInputsAtOnce]) __attribute__((always_inline)) {
      const int8x16x4_t loaded =
          kOrder == ByteOrder::kByOutput ? vld4q_s8(weights) : vld1q_s8_x4(weights);
#pragma GCC unroll 4
      for (size_t i = 0; i < kInputsAtOnce; ++i) four[i] = loaded.val[i];
      weights += kFourBytes;
    };
    MultiplyFour<true>(load, values, sums);
    const int8_t* const end = weights + (kStepBytes - kFourBytes);
#pragma GCC unroll 1  // Unrolled, GCC would move sums between registers.
    while (weights != end) MultiplyFour<false>(load, values, sums);
  }

  // Adds the sums of a step to those of the rows. `span` begins with the step's group.
  template <size_t kRows>
  [[gnu::always_inline]] static void AddScaled(const ByteSpan& span, bool is_last,
                                               const int8_t* const (&rows)[kRows],
                                               const Distances& distances,
                                               const Sums16 (&step_sums)[kRows],
                                               float (*sums)[kNeonOutputs]) {
    // So that the compiler does not load them before the products.
    asm volatile("" : : : "memory");
    float32x4_t scales[kNeonVectors];
    float32x4_t minimums[kNeonVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonVectors; ++v) {
      scales[v] = vld1q_f32(span.scales + 4 * v);
      if (kSubtracts && is_last) minimums[v] = vld1q_f32(span.minimums + 4 * v);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      // BlockOffset is -128 times the sum of activations.
      const int32x4_t lacking =
          vdupq_n_s32(kIsCentered ? -(NumberOf<int32_t>(rows[r], distances.offsets) >> 4) : 0);
      const float row_scale = NumberOf<float>(rows[r], distances.scales);
      const float row_sum = kSubtracts && is_last ? SumOf(rows[r], distances.sums) : 0.0f;
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonVectors; ++v) {
        const int16x8_t eight = step_sums[r][v / 2];
        const float32x4_t exact = vcvtq_f32_s32(v % 2 == 0 ? vaddw_s16(lacking, vget_low_s16(eight))
                                                           : vaddw_high_s16(lacking, eight));
        float32x4_t sum = vld1q_f32(sums[r] + 4 * v);
        sum = vfmaq_f32(sum, exact, vmulq_n_f32(scales[v], row_scale));
        if (kSubtracts && is_last) sum = vfmsq_n_f32(sum, minimums[v], row_sum);
        vst1q_f32(sums[r] + 4 * v, sum);
      }
      // So that it does not keep some of the sums in registers as well.
      asm volatile("" : : : "memory");
    }
  }
};

}  // namespace cria::ops
