#pragma once

#include <cstddef>
#include <span>

namespace cria {

// Multiplies each row of `values`, [rows, columns], by the Hadamard matrix of ops/hadamard.h, as
// the decoder does with the hidden state.
void RotateRows(size_t columns, std::span<float> values);

// Rotates each column instead.
void RotateColumns(size_t columns, std::span<float> values);

}  // namespace cria
