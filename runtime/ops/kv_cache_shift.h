#pragma once

#include <cstddef>

#include "ops/kv_cache_view.h"

namespace cria::ops {

// Drops positions [first, first + count) of one layer's cache: positions [first + count, end) move
// down by `count`, and their keys, which rope rotated by their position, are rotated back by
// `count` positions. first + count <= end <= capacity_tokens; head_dim is at most kMaxHeadDim.
// `cosines` and `sines` are the rope table's row `count`, [head_dim / 2].
//
// Values do not change. A key is rounded again to the cache's type each time it moves; for int8,
// each rounding adds an error of up to half a step of its new scale.
void DropPositions(const KvCacheView& cache, size_t first, size_t count, size_t end,
                   const float* cosines, const float* sines);

}  // namespace cria::ops
