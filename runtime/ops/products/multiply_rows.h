#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "ops/products/tile_kernel.h"

namespace cria::ops {

// Calls Rows::Multiply<n> for a product of n rows, 1 to kMaxRows: a kernel that is compiled for
// each number of rows.
template <class Rows, size_t kMaxRows>
inline void MultiplyRows(const TileProduct& product) {
  constexpr auto kMultiply = []<size_t... kRows>(std::index_sequence<kRows...>) {
    return std::array{Rows::template Multiply<kRows + 1>...};
  }(std::make_index_sequence<kMaxRows>());
  kMultiply[product.rows.num_rows - 1](product);
}

}  // namespace cria::ops
