#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "ops/products/neon_tile-inl.h"

namespace cria::ops {

// Inputs of a group, which are half of a vector: the other half has those of the next output, or of
// the next row.
inline constexpr size_t kMatrixInputs = 8;
// Vectors that have a group of inputs of each output of a tile.
inline constexpr size_t kMatrixVectors = kNeonOutputs / 2;

// Adds to the sums {row 0 · output 0, row 0 · output 1, row 1 · output 0, row 1 · output 1} of two
// rows and two outputs the products of a group of 8 inputs (SMMLA). In assembly, as AddDot.
[[gnu::always_inline]] inline void AddMatrixProduct(int8x16_t rows, int8x16_t outputs,
                                                    int32x4_t& sums) {
  asm volatile(".arch_extension i8mm\n\tsmmla %0.4s, %1.16b, %2.16b"
               : "+w"(sums)
               : "w"(rows), "w"(outputs));
}

// 16 activations of two rows: the first 8 of both, then the next 8.
struct PairOfRows {
  int8x16_t low;
  int8x16_t high;
};

// kRows rows in pairs; if their number is odd, both rows of the last pair are the same.
template <size_t kRows>
class PairedRows {
 public:
  static constexpr size_t kPairs = (kRows + 1) / 2;

  [[gnu::always_inline]] explicit PairedRows(const QuantizedMatrix& rows) {
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) rows_[r] = rows.values + r * rows.stride;
  }

  // The activations from `input` on.
  [[gnu::always_inline]] void Load(size_t input, PairOfRows (&pairs)[kPairs]) const {
#pragma GCC unroll 2
    for (size_t p = 0; p < kPairs; ++p) {
      const auto a = vreinterpretq_s64_s8(LoadActivations(rows_[2 * p], input));
      auto b = a;
      if (2 * p + 1 < kRows) b = vreinterpretq_s64_s8(LoadActivations(rows_[2 * p + 1], input));
      pairs[p].low = vreinterpretq_s8_s64(vzip1q_s64(a, b));
      pairs[p].high = vreinterpretq_s8_s64(vzip2q_s64(a, b));
    }
  }

 private:
  const int8_t* rows_[kRows];
};

// The sums of row `is_second` of a pair for four outputs, from those of both rows for two and two.
template <typename Vector>
[[gnu::always_inline]] inline Vector SumsOfRow(Vector sums01, Vector sums23, bool is_second) {
  const auto a = reinterpret_cast<int64x2_t>(sums01);
  const auto b = reinterpret_cast<int64x2_t>(sums23);
  return reinterpret_cast<Vector>(is_second ? vzip2q_s64(a, b) : vzip1q_s64(a, b));
}

// The sums of all rows for `kVectors` vectors of 2 outputs: as AddMatrixProduct has them, except
// for one row alone, whose vectors have 4 outputs.
template <size_t kRows, size_t kVectors>
using MatrixSums = float32x4_t[PairedRows<kRows>::kPairs][kRows == 1 ? kVectors / 2 : kVectors];

// The scales of a block of activations: those of a pair's first row, twice, and of its second.
template <size_t kRows>
[[gnu::always_inline]] inline float32x4_t ScalesOfPair(const float* const (&row_scales)[kRows],
                                                       size_t pair, size_t block) {
  const float* const second = row_scales[2 * pair + 1 < kRows ? 2 * pair + 1 : 2 * pair];
  return vcombine_f32(vld1_dup_f32(row_scales[2 * pair] + block), vld1_dup_f32(second + block));
}

// Brings the sums into the order of rows: kVectors / 2 vectors of 4 outputs each.
template <size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void ToRows(const MatrixSums<kRows, kVectors>& sums,
                                          float32x4_t (&rows)[kRows][kVectors / 2]) {
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; v += 2) {
      if constexpr (kRows == 1) {
        rows[r][v / 2] = sums[0][v / 2];
      } else {
        rows[r][v / 2] = SumsOfRow(sums[r / 2][v], sums[r / 2][v + 1], r % 2 == 1);
      }
    }
  }
}

// Multiplies one pair of rows by a whole tile at once, and two pairs by one half after the other.
// Part::Multiply<kRows, kVectors>(product, first) multiplies all rows by `kVectors` vectors of 2
// outputs, from vector `first` of the tile on.
template <class Part>
struct MatrixRows {
  template <size_t kRows>
  static void Multiply(const TileProduct& product) {
    constexpr size_t kVectors = kMatrixVectors / PairedRows<kRows>::kPairs;
    for (size_t first = 0; first < kMatrixVectors; first += kVectors) {
      Part::template Multiply<kRows, kVectors>(product, first);
    }
  }
};

// The kernel for Rows that use AddMatrixProduct; null if this processor has no such instruction.
template <class Rows, size_t kMaxRows>
const TileKernel* NeonMatrixKernel() {
  static const bool is_possible = platform::HasArmInt8Matrices();
  return is_possible ? &kNeonKernel<Rows, kMatrixInputs, kMaxRows> : nullptr;
}

}  // namespace cria::ops
