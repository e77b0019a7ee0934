#pragma once

#include <algorithm>
#include <cstddef>

#include "core/numeric.h"
#include "core/thread_pool.h"

namespace cria {

// A part of a product that a thread computes at once.
struct Tile {
  size_t row = 0;
  size_t rows = 0;
  size_t column = 0;
  size_t columns = 0;
};

// How many of a product's `size` rows or columns a tile has. Tiles are equal, because threads share
// these better than a small rest. In larger tiles, less time goes into bringing the factors into
// the order of a product; smaller ones are shared by more threads.
inline size_t TileSize(size_t size) {
  constexpr size_t kUnit = 8;
  const size_t most = size < 1024 ? 256 : 512;
  return DivideRoundingUp(DivideRoundingUp(size, DivideRoundingUp(size, most)), kUnit) * kUnit;
}

// Calls `compute(const Tile&)` for all tiles of a product, which do not depend on the number of
// threads.
template <typename Compute>
void ForEachTile(const ThreadPool& threads, size_t rows, size_t columns, const Compute& compute) {
  if (rows == 0 || columns == 0) return;
  const size_t tile_rows = TileSize(rows);
  const size_t tile_columns = TileSize(columns);
  const size_t tiles = DivideRoundingUp(columns, tile_columns);
  threads.ParallelFor(DivideRoundingUp(rows, tile_rows) * tiles, [&](size_t index) {
    const size_t row = index / tiles * tile_rows;
    const size_t column = index % tiles * tile_columns;
    compute(Tile{.row = row,
                 .rows = std::min(tile_rows, rows - row),
                 .column = column,
                 .columns = std::min(tile_columns, columns - column)});
  });
}

}  // namespace cria
