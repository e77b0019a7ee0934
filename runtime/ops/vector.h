#pragma once

#include <cstddef>
#include <cstdint>

namespace cria::ops {

// accumulator[i] += addend[i].
void Add(const float* addend, size_t size, float* accumulator);

// values[i] *= sigmoid(gates[i]).
void MultiplyBySigmoid(const float* gates, size_t size, float* values);

// The index of the largest value; of equal values, the first. NaN is never the largest; returns 0
// if every value is NaN. `size` must be positive.
size_t ArgMax(const float* values, size_t size);

// The sum of exp(values[i] - largest), where `largest` is the largest value. Terms have an error of
// some units in the last place of a float; NaN if a value is NaN.
double SumOfExps(const float* values, size_t size, float largest);

// Converts one row of int8 to float: output[i] = scale * row[i].
void DequantizeQc8w(const int8_t* row, float scale, size_t size, float* output);

// Converts one row of int4 (low nibble first, stored + 8) to float, with one bf16 scale per
// `block_size` values. `size` must be even.
void DequantizeQb4w(const uint8_t* row, const uint16_t* scales, size_t block_size, size_t size,
                    float* output);

// Converts between f32 and f16 (IEEE 754 binary16, as bits); values are rounded to the nearest.
void ToF16(const float* values, size_t size, uint16_t* output);
void FromF16(const uint16_t* values, size_t size, float* output);

}  // namespace cria::ops
