#pragma once

#include <cstddef>

namespace cria::ops {

// Multiplies each column of `values`, [size][columns], in place by the normalized Hadamard matrix
// of the largest power of two 2^k that divides its size, H(1) = 1, H(2n) = [H(n) H(n); H(n) -H(n)]
// / sqrt(2); a column that is longer than 2^k is made of parts of 2^k. The matrix is symmetric and
// orthogonal, so a second call gives the values back. The result is the same, bit by bit, for every
// instruction set.
void HadamardTransform(float* values, size_t size, size_t columns = 1);

}  // namespace cria::ops
