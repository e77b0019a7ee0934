#pragma once

#include <cstddef>

#include "core/numeric.h"

namespace cria {

// How many of a product's `size` rows or columns a thread computes at once. Tiles are equal,
// because threads share these better than a small rest. In larger tiles, less time goes into
// bringing the factors into the order of a product; smaller ones are shared by more threads.
inline size_t TileSize(size_t size) {
  constexpr size_t kUnit = 8;
  if (size == 0) return kUnit;
  const size_t most = size < 1024 ? 256 : 512;
  return DivideRoundingUp(DivideRoundingUp(size, DivideRoundingUp(size, most)), kUnit) * kUnit;
}

}  // namespace cria
