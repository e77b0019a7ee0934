#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/kv_cache_view.h"

namespace cria {

// Rows of keys and values of one layer, which stand in the caches of all ranks at the same place.
struct KvRows {
  size_t layer;
  size_t first_row;  // The first row of each head.
  size_t num_rows;
};

// Keys, values, key scales and value scales. The last two are empty unless the type is kInt8.
using KvParts = std::array<std::span<std::byte>, 4>;

// Bytes of one row of each part, in one head.
std::array<size_t, 4> KvPartRowBytes(size_t head_dim, KvType type);
// The bytes of all parts of a row.
uint64_t KvRowBytes(size_t head_dim, KvType type);

// The rows of one of the cache's heads, where they are.
KvParts RowsInCache(const KvRows& rows, const ops::KvCacheView& cache, size_t head);

}  // namespace cria
