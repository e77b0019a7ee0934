#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"
#include "ops/products/tile_kernel.h"

namespace cria::ops {

// A step is a block of activations. A line of weights are those of a tile for four inputs,
// [outputs][4], as AddDot takes them.
inline constexpr size_t kDotStepLines = kActivationBlock / 4;
inline constexpr size_t kDotLineBytes = 4 * kNeonOutputs;

// The weights of a tile for several steps, unpacked once for all rows.
struct DotSpan {
  const int8_t* weights;  // [steps][kDotStepLines][kDotLineBytes]
  const float* scales;    // [steps][outputs]
  // [steps][outputs]: what the first step of a group has is subtracted for each activation of the
  // group.
  const float* minimums = nullptr;
};

// Products of many rows and a DotSpan, by dot products of bytes (SDOT), in groups of kGroupSteps
// steps. Half a tile and six rows are multiplied together: their sums and those of a step, six
// vectors of activations and two of weights take all registers. In assembly, because compilers
// would load numbers earlier than they need them, and then have too few registers.
template <size_t kGroupSteps, bool kSubtracts>
class DotSpanProduct {
 public:
  // Adds the products of `steps` steps, from `input` on, to the rows' sums.
  static void Add(const TileProduct& product, const DotSpan& span, size_t input, size_t steps,
                  float (*sums)[kNeonOutputs]) {
    AddAllRows<DotSpanProduct, 6, 3, 2, 1>(product, span, input, steps, sums);
  }

  // What AddAllRows calls.
  template <size_t kRows>
  [[gnu::noinline]] static void AddRows(const TileProduct& product, size_t first_row, size_t input,
                                        const DotSpan& span, size_t steps,
                                        float (*sums)[kNeonOutputs]) {
    Rows<kRows> rows;
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) rows.values[r] = product.Row(first_row + r) + input;
    const auto distance = [&](const float* numbers) {
      return static_cast<size_t>(
          reinterpret_cast<const int8_t*>(numbers + input / kActivationBlock) - rows.values[0]);
    };
    for (size_t output = 0; output < kNeonOutputs; output += 4 * kVectors) {
      rows.scales = distance(product.Scales(first_row));
      rows.sums = distance(product.Sums(first_row));
      Sums row_sums[kRows];
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) row_sums[r][v] = vld1q_f32(sums[r] + output + 4 * v);
      }
      AddGroups({.weights = span.weights + 4 * output,
                 .scales = span.scales + output,
                 .minimums = kSubtracts ? span.minimums + output : nullptr},
                steps, rows, row_sums);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) vst1q_f32(sums[r] + output + 4 * v, row_sums[r][v]);
      }
    }
  }

 private:
  static constexpr size_t kVectors = kNeonVectors / 2;
  static constexpr size_t kHalfInputs = kActivationBlock / 2;
  using Sums = float32x4_t[kVectors];
  using Dots = int32x4_t[kVectors];

  // The rows from an input on, and how many bytes behind its values a row has its numbers.
  template <size_t kRows>
  struct Rows {
    const int8_t* values[kRows];
    size_t scales;
    size_t sums;
  };

  // Adds the products of all groups for the outputs that the span begins with.
  template <size_t kRows>
  [[gnu::always_inline]] static void AddGroups(DotSpan span, size_t steps, Rows<kRows>& rows,
                                               Sums (&sums)[kRows]) {
    size_t input = 0;
    for (size_t step = 0; step < steps; step += kGroupSteps) {
      const size_t end = input + kGroupSteps * kActivationBlock;
      do {
        Dots dots[kRows];
#pragma GCC unroll 8
        for (auto& row : dots) {
#pragma GCC unroll 4
          for (auto& dot : row) asm volatile("movi %0.4s, #0" : "=w"(dot));
        }
        AddHalfStep<0>(span.weights, rows, input, dots);
        AddHalfStep<kDotStepLines / 2>(span.weights, rows, input + kHalfInputs, dots);
        AddScaled(span.scales, rows, dots, sums);
        span.weights += kDotStepLines * kDotLineBytes;
        rows.scales += sizeof(float);
        input += kActivationBlock;
      } while (input != end);
      if constexpr (kSubtracts) {
        SubtractMinimums(span.minimums, rows, sums);
        rows.sums += kGroupSteps * sizeof(float);
        span.minimums += kGroupSteps * kNeonOutputs;
      }
      span.scales += kGroupSteps * kNeonOutputs;
    }
  }

  // Adds the dot products of 16 inputs, from `input` on, whose lines of the step begin with kLine.
  template <size_t kLine, size_t kRows>
  [[gnu::always_inline]] static void AddHalfStep(const int8_t* weights, const Rows<kRows>& rows,
                                                 size_t input, Dots (&dots)[kRows]) {
    int8x16_t activations[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) activations[r] = LoadActivations(rows.values[r], input);
    AddLine<kLine>(weights, activations, dots);
    AddLine<kLine + 1>(weights, activations, dots);
    AddLine<kLine + 2>(weights, activations, dots);
    AddLine<kLine + 3>(weights, activations, dots);
  }

  template <size_t kLine, size_t kRows>
  [[gnu::always_inline]] static void AddLine(const int8_t* weights,
                                             const int8x16_t (&activations)[kRows],
                                             Dots (&dots)[kRows]) {
    int8x16_t line[kVectors];
    LoadTwo<kLine * kDotLineBytes>(weights, line);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) AddDot<kLine % 4>(line[v], activations[r], dots[r][v]);
    }
  }

  template <size_t kRows>
  [[gnu::always_inline]] static void AddScaled(const float* scales, const Rows<kRows>& rows,
                                               const Dots (&dots)[kRows], Sums (&sums)[kRows]) {
    Sums scale;
    LoadTwo<0>(scales, scale);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const float row_scale = Number(rows.values[r], rows.scales);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        const float32x4_t factor = vmulq_n_f32(scale[v], row_scale);
        sums[r][v] = vfmaq_f32(sums[r][v], vcvtq_f32_s32(dots[r][v]), factor);
      }
    }
  }

  template <size_t kRows>
  [[gnu::always_inline]] static void SubtractMinimums(const float* minimums,
                                                      const Rows<kRows>& rows,
                                                      Sums (&sums)[kRows]) {
    static_assert(kGroupSteps <= 2);
    Sums minimum;
    LoadTwo<0>(minimums, minimum);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const float sum = kGroupSteps == 1 ? Number(rows.values[r], rows.sums)
                                         : vpadds_f32(TwoNumbers(rows.values[r], rows.sums));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = vfmsq_n_f32(sums[r][v], minimum[v], sum);
    }
  }

  template <size_t kOffset, typename Vector>
  [[gnu::always_inline]] static void LoadTwo(const void* from, Vector (&vectors)[kVectors]) {
    asm volatile("ldp %q0, %q1, [%2, %3]"
                 : "=w"(vectors[0]), "=w"(vectors[1])
                 : "r"(from), "i"(kOffset));
  }
  // A number of a row, so many bytes behind its values; and two of them.
  [[gnu::always_inline]] static float Number(const int8_t* row, size_t distance) {
    float number;
    asm volatile("ldr %s0, [%1, %2]" : "=w"(number) : "r"(row), "r"(distance));
    return number;
  }
  [[gnu::always_inline]] static float32x2_t TwoNumbers(const int8_t* row, size_t distance) {
    float32x2_t numbers;
    asm volatile("ldr %d0, [%1, %2]" : "=w"(numbers) : "r"(row), "r"(distance));
    return numbers;
  }
};

}  // namespace cria::ops
