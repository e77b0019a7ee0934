#pragma once

#include <cstddef>

namespace cria::ops {

// Multiplies a row by the normalized Hadamard matrix of its size's largest power of two 2^k,
// H(1) = 1, H(2n) = [H(n) H(n); H(n) -H(n)] / sqrt(2), in place; a row that is longer than 2^k is
// made of parts of 2^k. The matrix is symmetric and orthogonal, so a second call gives the row
// back. The result is the same, bit by bit, for every instruction set.
void HadamardTransform(float* row, size_t size);

}  // namespace cria::ops
