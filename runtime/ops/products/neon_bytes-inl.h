#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace cria::ops {

// Products of bytes for processors without dot products: a vector has the weights of 16 outputs for
// one input, and an activation is repeated in all lanes of another.
inline constexpr size_t kInputsAtOnce = 4;

// A row's sums for outputs 0 to 7 and 8 to 15 of a tile.
using Sums16 = int16x8_t[2];

// Four activations, each repeated 16 times. LD4R needs consecutive registers, which the compilers
// have no common notation for, so they are named here: two sets, because two rows are multiplied by
// turns.
template <bool kIsOdd>
struct FourInputs;

template <>
struct FourInputs<false> {
  int8x16_t input[kInputsAtOnce];
  [[gnu::always_inline]] void LoadNext(const int8_t*& values) {
    register int8x16_t a0 asm("v24");
    register int8x16_t a1 asm("v25");
    register int8x16_t a2 asm("v26");
    register int8x16_t a3 asm("v27");
    asm volatile("ld4r {v24.16b-v27.16b}, [%4], #4"
                 : "=w"(a0), "=w"(a1), "=w"(a2), "=w"(a3), "+r"(values));
    input[0] = a0, input[1] = a1, input[2] = a2, input[3] = a3;
  }
};

template <>
struct FourInputs<true> {
  int8x16_t input[kInputsAtOnce];
  [[gnu::always_inline]] void LoadNext(const int8_t*& values) {
    register int8x16_t a0 asm("v28");
    register int8x16_t a1 asm("v29");
    register int8x16_t a2 asm("v30");
    register int8x16_t a3 asm("v31");
    asm volatile("ld4r {v28.16b-v31.16b}, [%4], #4"
                 : "=w"(a0), "=w"(a1), "=w"(a2), "=w"(a3), "+r"(values));
    input[0] = a0, input[1] = a1, input[2] = a2, input[3] = a3;
  }
};

// Adds the products of one activation and 16 weights to the sums, or begins them. As intrinsics,
// the compiler would widen the weights once for several rows and not have enough registers.
template <bool kIsFirst>
[[gnu::always_inline]] inline void AddProducts(int8x16_t weights, int8x16_t input, Sums16& sums) {
  if constexpr (kIsFirst) {
    asm volatile("smull %0.8h, %1.8b, %2.8b" : "=w"(sums[0]) : "w"(weights), "w"(input));
    asm volatile("smull2 %0.8h, %1.16b, %2.16b" : "=w"(sums[1]) : "w"(weights), "w"(input));
  } else {
    asm volatile("smlal %0.8h, %1.8b, %2.8b" : "+w"(sums[0]) : "w"(weights), "w"(input));
    asm volatile("smlal2 %0.8h, %1.16b, %2.16b" : "+w"(sums[1]) : "w"(weights), "w"(input));
  }
}

// AddProducts of rows and the weights for the next four inputs, which `load_weights` stores into
// vectors; moves `values` behind these inputs.
template <bool kIsFirst, size_t kRows, class LoadWeights>
[[gnu::always_inline]] inline void MultiplyFour(const LoadWeights& load_weights,
                                                const int8_t* (&values)[kRows],
                                                Sums16 (&sums)[kRows]) {
  int8x16_t weights[kInputsAtOnce];
  FourInputs<false> even;
  FourInputs<true> odd;
  even.LoadNext(values[0]);
  if constexpr (kRows > 1) odd.LoadNext(values[1]);
  load_weights(weights);
  // Two rows by turns, so that an addition need not wait for the one before it.
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; r += 2) {
    AddProducts<kIsFirst>(weights[0], even.input[0], sums[r]);
    if (r + 1 < kRows) AddProducts<kIsFirst>(weights[0], odd.input[0], sums[r + 1]);
#pragma GCC unroll 4
    for (size_t i = 1; i < kInputsAtOnce; ++i) {
      AddProducts<false>(weights[i], even.input[i], sums[r]);
      if (r + 1 < kRows) AddProducts<false>(weights[i], odd.input[i], sums[r + 1]);
    }
    if (r + 2 < kRows) even.LoadNext(values[r + 2]);
    if (r + 3 < kRows) odd.LoadNext(values[r + 3]);
  }
}

}  // namespace cria::ops
