#pragma once

#include <cstddef>
#include <span>

namespace cria {

// Multiplies each row of `values`, [rows, columns], by the normalized Hadamard matrix of the
// largest power of two that divides the columns, as the runtime's ops/hadamard.h says.
void RotateRows(size_t columns, std::span<float> values);

// The same for each column: [rows, columns] with the largest power of two that divides the rows.
void RotateColumns(size_t columns, std::span<float> values);

}  // namespace cria
